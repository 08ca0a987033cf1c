package main

import (
	"bench"
	"runtime"
	"sync"
)

const locks = 10_240 // as in workload.hpp

func main() {
	bench.Run(func(state *bench.State) {
		contenders := state.Size()
		runtime.GOMAXPROCS(1)
		state.Measure(locks, locks, func() int {
			var turn sync.Mutex
			var all sync.WaitGroup
			number := 0
			all.Add(contenders)
			for i := 0; i != contenders; i++ {
				go func() {
					for times := locks / contenders; times != 0; times-- {
						turn.Lock()
						before := number
						runtime.Gosched()
						number = before + 1
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
