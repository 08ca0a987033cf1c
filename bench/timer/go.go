// A timer is told how long, so it reads the clock each time.
package main

import (
	"bench"
	"math/rand"
	"time"
)

// As in workload.hpp.
const (
	rounds = 10_000
	batch  = 1000
	limit  = 5 * time.Second
)

func main() {
	bench.Run(func(state *bench.State) {
		if state.Size() == 2 {
			timers := make([]*time.Timer, batch)
			for i := range timers {
				timers[i] = time.NewTimer(limit)
			}
			ask, answer := make(chan struct{}), make(chan int)
			go func() {
				for range ask {
					stopped := 0
					for _, one := range timers {
						if one.Stop() {
							stopped++
						}
					}
					answer <- stopped
				}
			}()
			state.Measure(rounds, rounds, func() int {
				stopped := 0
				for i := 0; i != rounds; i += batch {
					for _, one := range timers {
						one.Reset(limit)
					}
					ask <- struct{}{}
					stopped += <-answer
				}
				return stopped
			})
			return
		}
		if state.Size() > 2 {
			for i := 0; i != state.Size(); i++ {
				time.AfterFunc(time.Duration(10_000+rand.Intn(60_000))*time.Millisecond, func() {})
			}
		}
		one := time.NewTimer(limit)
		one.Stop()
		state.Measure(rounds, rounds, func() int {
			stopped := 0
			for i := 0; i != rounds; i++ {
				one.Reset(limit)
				if one.Stop() {
					stopped++
				}
			}
			return stopped
		})
	})
}
