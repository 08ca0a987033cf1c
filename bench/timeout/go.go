// With one timer that is used again, which takes less than a new one each time.
package main

import (
	"bench"
	"runtime"
	"time"
)

const rounds = 10_000 // as in workload.hpp

func echo(there <-chan int, back chan<- int) {
	for number := range there {
		back <- number + 1
	}
}

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(1)
		limit := time.Duration(state.Size()) * time.Second
		state.Measure(rounds, rounds, func() int {
			there, back := make(chan int), make(chan int)
			go echo(there, back)
			timer := time.NewTimer(time.Hour)
			defer timer.Stop()
			number := 0
			for i := 0; i != rounds; i++ {
				there <- number
				if limit == 0 {
					number = <-back
					continue
				}
				timer.Reset(limit)
				select {
				case number = <-back:
				case <-timer.C:
					panic("there was time enough")
				}
				timer.Stop()
			}
			close(there)
			return number
		})
	})
}
