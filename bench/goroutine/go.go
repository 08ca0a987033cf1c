package main

import (
	"bench"
	"sync"
	"time"
)

func echo(in <-chan int, out chan<- int) {
	for number := range in {
		out <- number
	}
}

func main() {
	bench.Run(func(state *bench.State) {
		count := state.Size()
		begin := time.Now()
		phase := func(name string) {
			state.Report(name, float64(time.Since(begin))/float64(count))
			begin = time.Now()
		}
		in, out := make([]chan int, count), make([]chan int, count)
		for i := range in {
			in[i], out[i] = make(chan int, 1), make(chan int, 1)
		}
		phase("create ns")
		var all sync.WaitGroup
		all.Add(count)
		for i := range in {
			go func(i int) {
				echo(in[i], out[i])
				all.Done()
			}(i)
		}
		phase("start ns")
		sweep := func() int {
			sum := 0
			for i := range in {
				in[i] <- i
				sum += <-out[i]
			}
			return sum
		}
		once, switches := count*(count-1)/2, 0 // as in workload.hpp
		if state.Full() {
			switches = 1000
		}
		switches = state.Option("--switches", switches)
		if switches == 0 {
			state.Measure(float64(count), once, sweep)
		} else {
			state.Report("switches of each", float64(switches))
			state.MeasureOnce(float64(count*switches), once*switches, func() int {
				sum := 0
				for i := 0; i != switches; i++ {
					sum += sweep()
				}
				return sum
			})
		}
		begin = time.Now()
		for i := range in {
			close(in[i])
		}
		all.Wait()
		phase("close ns")
	})
}
