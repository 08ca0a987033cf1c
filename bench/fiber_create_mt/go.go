package main

import (
	"bench"
	"runtime"
	"sync"
)

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		const count = 3000
		state.Measure(count, count, func() int {
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
