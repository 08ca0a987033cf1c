package bench

import (
	"sort"
	"sync/atomic"
	"time"
)

// Latencies is what latencies.hpp is: how long single events took.
type Latencies struct {
	all []float64 // us
}

// Time hands post a flag for a goroutine to set, and calls wait until it is set.
func (l *Latencies) Time(post func(ran *uint32), wait func()) int {
	var ran uint32
	begin := time.Now()
	post(&ran)
	for atomic.LoadUint32(&ran) == 0 {
		wait()
	}
	l.all = append(l.all, float64(time.Since(begin).Nanoseconds())/1000)
	return 1
}

// Report tells the median and the slow ones.
func (l *Latencies) Report(to *State) {
	sort.Float64s(l.all)
	at := func(share float64) float64 { return l.all[int(share*float64(len(l.all)-1))] }
	to.Report("p50 us", at(0.5))
	to.Report("p99 us", at(0.99))
	to.Report("p99.9 us", at(0.999))
}
