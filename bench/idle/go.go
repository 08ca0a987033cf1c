package main

import (
	"bench"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// As in workload.hpp. There is no outside: who posts is a goroutine, on one processor more, and waits without giving it away.
func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size() + 1)
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
		time.Sleep(time.Second)
		state.Report("idle cpu us", used()-before)
	})
}

func used() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1000
}
