// A goroutine in an errgroup, which joins all that it has: here the only one. A call makes no more than 100,000, as with a
// sync.WaitGroup.
package main

import (
	"bench"

	"golang.org/x/sync/errgroup"
)

func main() {
	bench.Run(func(state *bench.State) {
		forks := state.Size()
		if forks > 100_000 {
			forks = 100_000
		}
		state.Measure(float64(forks), forks, func() int {
			ended := 0
			for ended != forks {
				var group errgroup.Group
				group.Go(func() error { return nil })
				if group.Wait() == nil {
					ended++
				}
			}
			return ended
		})
	})
}
