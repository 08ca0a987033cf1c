package main

import (
	"bench"
	"runtime"
	"sync/atomic"
)

// As in workload.hpp. There is no outside: who posts is one more that yields until it has run. Without that the short one
// lies in its poster's queue, behind it, for some 25 ms.
const yieldingTasks = 100

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		var over uint32
		for i := 0; i != yieldingTasks; i++ {
			go func() {
				for atomic.LoadUint32(&over) == 0 {
					runtime.Gosched()
				}
			}()
		}
		var all bench.Latencies
		state.Measure(1, 1, func() int {
			return all.Time(func(ran *uint32) { go atomic.StoreUint32(ran, 1) }, runtime.Gosched)
		})
		all.Report(state)
		atomic.StoreUint32(&over, 1)
	})
}
