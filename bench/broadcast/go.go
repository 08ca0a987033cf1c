package main

import (
	"bench"
	"runtime"
)

// As in workload.hpp.
const (
	numbers   = 50_000
	receivers = 4
	room      = 1024
	sum       = receivers * (numbers * (numbers - 1) / 2)
)

// Go has no broadcast: a channel for each receiver.
func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		state.Measure(numbers, sum, func() int {
			sums := make(chan int, receivers)
			var channels [receivers]chan int
			for i := range channels {
				channels[i] = make(chan int, room)
				go func(from chan int) {
					all := 0
					for number := range from {
						all += number
					}
					sums <- all
				}(channels[i])
			}
			for i := 0; i != numbers; i++ {
				for _, channel := range channels {
					channel <- i
				}
			}
			for _, channel := range channels {
				close(channel)
			}
			all := 0
			for range channels {
				all += <-sums
			}
			return all
		})
	})
}
