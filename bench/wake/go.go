package main

import (
	"bench"
	"net"
	"runtime"
	"sync/atomic"
	"time"
)

// As in workload.hpp. Who posts is a goroutine with a thread of its own, and waits without giving its processor away.
func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(2)
		runtime.LockOSThread()
		at, err := net.Listen("tcp", "127.0.0.1:0")
		state.Verify(err == nil)
		go at.Accept()
		var all bench.Latencies
		state.MeasurePrepared(1, 1, func() func() int {
			time.Sleep(2 * time.Millisecond)
			return func() int {
				return all.Time(func(ran *uint32) { go atomic.StoreUint32(ran, 1) }, func() {})
			}
		})
		all.Report(state)
	})
}
