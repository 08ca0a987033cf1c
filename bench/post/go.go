package main

import (
	"bench"
	"runtime"
	"sync"
)

// As in workload.hpp. There is no outside: the producers are goroutines, each on a thread of its own.
const (
	producers = 2
	postsEach = 20000
)

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		state.Measure(producers*postsEach, producers*postsEach, func() int {
			var ran sync.WaitGroup
			ran.Add(producers * postsEach)
			for i := 0; i != producers; i++ {
				go func() {
					runtime.LockOSThread()
					for i := 0; i != postsEach; i++ {
						go ran.Done()
					}
				}()
			}
			ran.Wait()
			return producers * postsEach
		})
	})
}
