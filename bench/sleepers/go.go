// A goroutine that sleeps can't be woken early: each waits for its timer or for the end.
package main

import (
	"bench"
	"runtime"
	"sync"
	"time"
)

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(1)
		count := state.Size()
		state.Measure(float64(count), count, func() int {
			var begun, ended sync.WaitGroup
			end := make(chan struct{})
			begun.Add(count)
			ended.Add(count)
			for i := 0; i != count; i++ {
				go func() {
					timer := time.NewTimer(time.Hour)
					begun.Done()
					select {
					case <-timer.C:
					case <-end:
					}
					timer.Stop()
					ended.Done()
				}()
			}
			begun.Wait()
			close(end)
			ended.Wait()
			return count
		})
	})
}
