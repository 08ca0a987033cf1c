// Package bench is what harness.hpp is to the programs in C++: it times an adapter in Go, bench/<workload>/go.go, and
// prints the same line of JSON.
//
//	func main() { bench.Run(func(state *bench.State) { state.Measure(items, expected, body) }) }
//
// Only the standard library, and no more than Go 1.19: what Debian 12 has builds it, without a network.
package bench

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	wantedBatches   = 30
	fewestBatches   = 3
	shortestBatch   = 200 * time.Microsecond // reading the clock must not show
	tooLongToRepeat = 5 * time.Second        // the first call is the figure
)

// State is one round of one workload.
type State struct {
	size           int
	full           bool
	warmUp, budget time.Duration
	ownRSS         int // KiB, before the workload began

	options, unknown map[string]int // "--kib": 64

	wall, cpu []float64 // ns an item, one a batch
	measured  float64
	extra     []string
}

// Size is the workload's parameter.
func (s *State) Size() int { return s.size }

// Full is whether the workload runs at its own length, where a quick run has no time for that.
func (s *State) Full() bool { return s.full }

// Option is what an option of the workload's own says, such as --kib; otherwise where it was not given.
func (s *State) Option(name string, otherwise int) int {
	delete(s.unknown, name)
	if given, is := s.options[name]; is {
		return given
	}
	return otherwise
}

// Report adds a figure that only this adapter knows.
func (s *State) Report(name string, value float64) {
	s.extra = append(s.extra, fmt.Sprintf("%q:%g", name, value))
}

// Verify ends the round with an error unless right.
func (s *State) Verify(right bool) {
	if !right {
		fail("the workload's result is not the expected one")
	}
}

// Measure times body again and again until the round's time is used up. Each call does so many items of work, or that part
// of one, and its result must be the expected one. The first part of the time warms up and finds out how many calls make a
// batch.
func (s *State) Measure(items float64, expected int, body func() int) {
	s.measureBatches(items, func(calls int) (wall, cpu time.Duration) {
		right := true
		cpuStart, start := processorTime(), time.Now()
		for i := 0; i != calls; i++ {
			right = body() == expected && right
		}
		wall, cpu = time.Since(start), processorTime()-cpuStart
		s.Verify(right)
		return wall, cpu
	})
}

// MeasureOnce times one call of body, without a warm-up: for a program whose length was given.
func (s *State) MeasureOnce(items float64, expected int, body func() int) {
	cpuStart, start := processorTime(), time.Now()
	right := body() == expected
	wall, cpu := time.Since(start), processorTime()-cpuStart
	s.Verify(right)
	s.add(wall, cpu, items)
}

// MeasurePrepared is Measure, where each call needs something fresh: prepare makes it outside the clock, and gives what is
// timed.
func (s *State) MeasurePrepared(items float64, expected int, prepare func() func() int) {
	s.measureBatches(items, func(calls int) (wall, cpu time.Duration) {
		for i := 0; i != calls; i++ {
			body := prepare()
			cpuStart, start := processorTime(), time.Now()
			right := body() == expected
			wall += time.Since(start)
			cpu += processorTime() - cpuStart
			s.Verify(right)
		}
		return wall, cpu
	})
}

func (s *State) measureBatches(items float64, batch func(calls int) (wall, cpu time.Duration)) {
	calls := 1
	for start := time.Now(); ; {
		wall, cpu := batch(calls)
		if wall >= tooLongToRepeat {
			s.add(wall, cpu, float64(calls)*items)
			return
		}
		target := max(s.budget/wantedBatches, shortestBatch)
		wanted := float64(target) * float64(calls) / float64(max(wall, 1))
		if most := float64(calls) * 100; wanted > most { // one short reading must not decide
			wanted = most
		}
		calls = 1
		if wanted > 1 {
			calls = int(wanted)
		}
		if time.Since(start) >= s.warmUp {
			break
		}
	}
	for start := time.Now(); time.Since(start) < s.budget || len(s.wall) < fewestBatches; {
		wall, cpu := batch(calls)
		s.add(wall, cpu, float64(calls)*items)
	}
}

func (s *State) add(wall, cpu time.Duration, items float64) {
	s.wall = append(s.wall, float64(max(wall, 1))/items)
	s.cpu = append(s.cpu, float64(cpu)/items)
	s.measured += items
}

// Run is main(): one round by the options of harness/main.cpp.
func Run(run func(*State)) {
	s := &State{warmUp: 50 * time.Millisecond, budget: 200 * time.Millisecond, ownRSS: statusKiB("VmRSS:"),
		options: map[string]int{}, unknown: map[string]int{}}
	for i := 1; i < len(os.Args); i += 2 {
		if i+1 == len(os.Args) {
			fail(os.Args[i] + " needs a value")
		}
		value, err := strconv.Atoi(os.Args[i+1])
		if err != nil {
			fail(err.Error())
		}
		switch os.Args[i] {
		case "--size":
			s.size = value
		case "--ms":
			s.budget = time.Duration(value) * time.Millisecond
		case "--warm-up":
			s.warmUp = time.Duration(value) * time.Millisecond
		case "--full":
			s.full = value != 0
		default:
			s.options[os.Args[i]], s.unknown[os.Args[i]] = value, value
		}
	}
	run(s)
	for name := range s.unknown {
		fail("unknown option " + name)
	}
	if len(s.wall) == 0 {
		fail("the adapter measured nothing")
	}
	fmt.Printf("{\"ns\":%g,\"cpu_ns\":%g,\"batches\":%d,\"items\":%.0f,\"size\":%d,\"peak_rss_kib\":%d,"+
		"\"start_rss_kib\":%d,\"allocator\":\"Go\",\"extra\":{%s}}\n",
		median(s.wall), median(s.cpu), len(s.wall), s.measured, s.size, statusKiB("VmHWM:"), s.ownRSS,
		strings.Join(s.extra, ","))
}

func fail(sentence string) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", os.Args[0], sentence)
	os.Exit(1)
}

func max(a, b time.Duration) time.Duration {
	if a > b {
		return a
	}
	return b
}

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fail(err.Error())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// statusKiB is a line such as "VmHWM:  1234 kB" of /proc/self/status.
func statusKiB(key string) int {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		fail(err.Error())
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == key {
			kib, _ := strconv.Atoi(words[1])
			return kib
		}
	}
	return 0
}
