package main

import (
	"bench"
	"runtime"
)

const rounds = 10_000 // as in workload.hpp

func echo(there <-chan int, back chan<- int) {
	for number := range there {
		back <- number + 1
	}
}

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		state.Measure(rounds, rounds, func() int {
			there, back := make(chan int), make(chan int)
			go echo(there, back)
			number := 0
			for i := 0; i != rounds; i++ {
				there <- number
				number = <-back
			}
			close(there)
			return number
		})
	})
}
