package main

import (
	"bench"
	"runtime"
	"sync"
)

// As in workload.hpp.
const (
	senders   = 4
	receivers = 4
	threads   = 2
	room      = 1024
)

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(threads)
		count := state.Size()
		state.Measure(float64(count), count*(count-1)/2, func() int {
			numbers := make(chan int, room)
			var sending sync.WaitGroup
			sending.Add(senders)
			for i := 0; i != senders; i++ {
				go func(first, end int) {
					for ; first != end; first++ {
						numbers <- first
					}
					sending.Done()
				}(i*(count/senders), (i+1)*(count/senders))
			}
			sums := make(chan int, receivers)
			for i := 0; i != receivers; i++ {
				go func() {
					sum := 0
					for number := range numbers {
						sum += number
					}
					sums <- sum
				}()
			}
			sending.Wait()
			close(numbers)
			sum := 0
			for i := 0; i != receivers; i++ {
				sum += <-sums
			}
			return sum
		})
	})
}
