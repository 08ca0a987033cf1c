package main

import (
	"bench"
	"sync"
)

// A goroutine that waits for its end stands for a coroutine that has yielded.
func main() {
	bench.Run(func(state *bench.State) {
		count := state.Size()
		state.Measure(float64(count), count, func() int {
			var begun, ended sync.WaitGroup
			end := make(chan struct{})
			begun.Add(count)
			ended.Add(count)
			for i := 0; i != count; i++ {
				go func() {
					begun.Done()
					<-end
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
