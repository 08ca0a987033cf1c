// A goroutine that a sync.WaitGroup waits for: an errgroup of the extended library is this and the first error. A call makes no
// more than 100,000, which take a tenth of a second: what ended leaves nothing behind.
package main

import (
	"bench"
	"sync"
)

func main() {
	bench.Run(func(state *bench.State) {
		forks := state.Size()
		if forks > 100_000 {
			forks = 100_000
		}
		state.Measure(float64(forks), forks, func() int {
			ended := 0
			for ; ended != forks; ended++ {
				var group sync.WaitGroup
				group.Add(1)
				go group.Done()
				group.Wait()
			}
			return ended
		})
	})
}
