package main

import (
	"bench"
	"runtime"
)

// As in workload.hpp.
const rounds = 1000

func goroutinesOf(size int) int {
	if size < 3000 {
		return 1000
	}
	return 3000
}

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size() % 1000)
		goroutines := goroutinesOf(state.Size())
		state.Measure(float64(goroutines*rounds), goroutines*rounds, func() int {
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
