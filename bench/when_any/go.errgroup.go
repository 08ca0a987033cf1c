// Two goroutines in an errgroup: the first error cancels the context that the other waits for, and both are joined. So whoever
// wins ends with one.
package main

import (
	"bench"
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
)

const races = 1000 // as in workload.hpp

var errWon = errors.New("has its value")

func main() {
	bench.Run(func(state *bench.State) {
		state.Measure(races, races, func() int {
			won := 0
			for i := 0; i != races; i++ {
				group, ctx := errgroup.WithContext(context.Background())
				group.Go(func() error {
					<-ctx.Done()
					return nil
				})
				group.Go(func() error { return errWon })
				if group.Wait() == errWon {
					won++
				}
			}
			return won
		})
	})
}
