package main

import (
	"bench"
	"runtime"
	"sync"
)

// As in workload.hpp.
const (
	locks       = 102_400
	readsAWrite = 100
)

var seen [64]int // what a contender read: kept, so that it reads

func main() {
	bench.Run(func(state *bench.State) {
		contenders := state.Size()
		if contenders == 1 {
			runtime.GOMAXPROCS(1)
		} else {
			runtime.GOMAXPROCS(2)
		}
		state.Measure(locks, contenders*(locks/contenders/readsAWrite), func() int {
			var lock sync.RWMutex
			var all sync.WaitGroup
			number := 0
			all.Add(contenders)
			for i := 0; i != contenders; i++ {
				go func(who int) {
					sum := 0
					for time := 1; time <= locks/contenders; time++ {
						if time%readsAWrite == 0 {
							lock.Lock()
							number++
							lock.Unlock()
						} else {
							lock.RLock()
							sum += number
							lock.RUnlock()
						}
					}
					seen[who] = sum
					all.Done()
				}(i)
			}
			all.Wait()
			return number
		})
	})
}
