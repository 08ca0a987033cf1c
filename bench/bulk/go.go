package main

import (
	"bench"
	"runtime"
	"sync"
)

// As in workload.hpp. There is no outside: who spawns from there is a goroutine with a thread of its own.
const tasks = 10000

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size() % 100)
		if state.Size() < 100 {
			runtime.LockOSThread()
		}
		var marks [tasks]byte
		state.Measure(tasks, tasks, func() int {
			var all sync.WaitGroup
			all.Add(tasks)
			for i := 0; i != tasks; i++ {
				go func(which int) {
					marks[which] = 1
					all.Done()
				}(i)
			}
			all.Wait()
			set := 0
			for i := range marks {
				set += int(marks[i])
				marks[i] = 0
			}
			return set
		})
	})
}
