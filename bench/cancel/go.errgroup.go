// A tree of errgroups: each leaf waits for the context of its group to be cancelled, which that of the whole tree does.
package main

import (
	"bench"
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const children = 10 // as in workload.hpp

type tree struct {
	waiting sync.WaitGroup
	ended   atomic.Int64
}

func (t *tree) leaf(ctx context.Context) error {
	t.waiting.Done()
	<-ctx.Done()
	t.ended.Add(1)
	return ctx.Err()
}

func (t *tree) node(ctx context.Context, leaves int) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := 0; i != children; i++ {
		group.Go(func() error {
			if leaves <= children {
				return t.leaf(ctx)
			}
			return t.node(ctx, leaves/children)
		})
	}
	return group.Wait()
}

func main() {
	bench.Run(func(state *bench.State) {
		leaves := state.Size()
		state.MeasurePrepared(float64(leaves), leaves, func() func() int {
			var whole tree
			whole.waiting.Add(leaves)
			ctx, cancel := context.WithCancel(context.Background())
			joined := make(chan error)
			go func() { joined <- whole.node(ctx, leaves) }()
			whole.waiting.Wait()
			return func() int {
				cancel()
				<-joined
				return int(whole.ended.Load())
			}
		})
	})
}
