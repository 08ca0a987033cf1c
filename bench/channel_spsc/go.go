package main

import (
	"bench"
	"runtime"
)

// As in workload.hpp.
const (
	numbers = 100_000
	room    = 1024
	sum     = numbers * (numbers - 1) / 2
)

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		state.Measure(numbers, sum, func() int {
			channel := make(chan int, room)
			go func() {
				for i := 0; i != numbers; i++ {
					channel <- i
				}
				close(channel)
			}()
			all := 0
			for number := range channel {
				all += number
			}
			return all
		})
	})
}
