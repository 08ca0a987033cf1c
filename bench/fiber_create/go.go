package main

import (
	"bench"
	"runtime"
	"sync"
)

// Goroutines on one thread; their stacks are as small as Go makes them, and it keeps ended ones. One begins when the one that
// made it waits.
func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(1)
		count := state.Size()
		state.Measure(float64(count), count, func() int {
			var all sync.WaitGroup
			ended := 0 // one thread: no two at once
			all.Add(count)
			for i := 0; i != count; i++ {
				go func() {
					ended++
					all.Done()
				}()
			}
			all.Wait()
			return ended
		})
	})
}
