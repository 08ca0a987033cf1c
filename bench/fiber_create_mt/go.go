package main

import (
	"bench"
	"runtime"
	"sync"
)

func main() {
	bench.Run(func(state *bench.State) {
		// As in workload.hpp.
		runtime.GOMAXPROCS(state.Size() % 1000)
		count := 3000
		if state.Size() >= 1000 {
			count = 1000
		}
		state.Measure(float64(count), count, func() int {
			var mutex sync.Mutex
			var all sync.WaitGroup
			ended := 0
			all.Add(count)
			for i := 0; i != count; i++ {
				go func() {
					runtime.Gosched()
					mutex.Lock()
					ended++
					mutex.Unlock()
					all.Done()
				}()
			}
			all.Wait()
			return ended
		})
	})
}
