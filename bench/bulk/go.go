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
		state.Measure(tasks, tasks, func() int {
			var all sync.WaitGroup
			all.Add(tasks)
			for i := 0; i != tasks; i++ {
				go all.Done()
			}
			all.Wait()
			return tasks
		})
	})
}
