package main

import (
	"bench"
	"runtime"
	"sync"
)

// Scheduled: goroutines on one thread that yield to each other. A turn of all is not one yield of each here, since the
// scheduler takes some out of turn; so each yields so often that making them does not show.
func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(1)
		count := state.Size()
		yieldsOfEach := 100
		if few := 100000 / count; few > yieldsOfEach {
			yieldsOfEach = few
		}
		state.Measure(float64(count*yieldsOfEach), count*yieldsOfEach, func() int {
			var all sync.WaitGroup
			turns := 0 // one thread: no two at once
			all.Add(count)
			for i := 0; i != count; i++ {
				go func() {
					for left := yieldsOfEach; left != 0; left-- {
						turns++
						runtime.Gosched()
					}
					all.Done()
				}()
			}
			all.Wait()
			return turns
		})
	})
}
