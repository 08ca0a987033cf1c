package main

import (
	"bench"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// As in workload.hpp. There is no outside: who posts is a goroutine, on one processor more, and waits without giving it away.
func main() {
	bench.Run(func(state *bench.State) {
		threads, seconds := state.Size()%1000, state.Size()/1000
		if seconds == 0 {
			seconds = 1
		}
		runtime.GOMAXPROCS(threads + 1)
		runtime.LockOSThread()
		var all bench.Latencies
		state.MeasurePrepared(1, 1, func() func() int {
			time.Sleep(2 * time.Millisecond)
			return func() int {
				return all.Time(func(ran *uint32) { go atomic.StoreUint32(ran, 1) }, func() {})
			}
		})
		all.Report(state)
		time.Sleep(20 * time.Millisecond)
		before := used()
		time.Sleep(time.Duration(seconds) * time.Second)
		state.Report(fmt.Sprintf("cpu us in %d s idle", seconds), used()-before)
	})
}

func used() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1000
}
