package main

import (
	"bench"
	"runtime"
	"sync"
)

// Goroutines on one thread that yield to each other. Their making is within the clock: some hundredth of it.
func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(1)
		count, switchesOfEach := state.Size(), 100 // as in workload.hpp
		if state.Full() {
			switchesOfEach = 1000
		}
		switchesOfEach = state.Option("--switches", switchesOfEach)
		state.Option("--kib", 0) // a goroutine's stack is as large as it has to be
		state.Report("switches of each", float64(switchesOfEach))
		state.Measure(float64(count*switchesOfEach), count*switchesOfEach, func() int {
			var all sync.WaitGroup
			switches := 0 // one thread: no two at once
			all.Add(count)
			for i := 0; i != count; i++ {
				go func() {
					for left := switchesOfEach; left != 0; left-- {
						switches++
						runtime.Gosched()
					}
					all.Done()
				}()
			}
			all.Wait()
			return switches
		})
	})
}
