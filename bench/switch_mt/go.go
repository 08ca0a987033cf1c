package main

import (
	"bench"
	"runtime"
)

// As in workload.hpp.
const (
	goroutines = 1000
	rounds     = 1000
)

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		state.Measure(goroutines*rounds, goroutines*rounds, func() int {
			ended := make(chan int, goroutines)
			for i := 0; i != goroutines; i++ {
				go func() {
					for i := 0; i != rounds; i++ {
						runtime.Gosched()
					}
					ended <- rounds
				}()
			}
			switches := 0
			for i := 0; i != goroutines; i++ {
				switches += <-ended
			}
			return switches
		})
	})
}
