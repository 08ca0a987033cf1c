package main

import (
	"bench"
	"runtime"
	"sync"
)

const locks = 102_400 // as in workload.hpp

func main() {
	bench.Run(func(state *bench.State) {
		contenders := state.Size()
		if contenders == 1 {
			runtime.GOMAXPROCS(1)
		} else {
			runtime.GOMAXPROCS(2)
		}
		state.Measure(locks, locks, func() int {
			var turn sync.Mutex
			var all sync.WaitGroup
			number := 0
			all.Add(contenders)
			for i := 0; i != contenders; i++ {
				go func() {
					for times := locks / contenders; times != 0; times-- {
						turn.Lock()
						number++
						turn.Unlock()
					}
					all.Done()
				}()
			}
			all.Wait()
			return number
		})
	})
}
