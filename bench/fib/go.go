// A goroutine and a channel for one child; the other is a call. fib(20) only: at a microsecond a call the 2.7 million of the
// others would take a round's time many times over.
package main

import (
	"bench"
	"runtime"
)

const (
	fibOf     = 20
	fibResult = 6_765
	fibCalls  = 21_891
)

func fib(n int) int {
	if n < 2 {
		return n
	}
	a := make(chan int, 1)
	go func() { a <- fib(n - 1) }()
	b := fib(n - 2)
	return <-a + b
}

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		state.Measure(fibCalls, fibResult, func() int { return fib(fibOf) })
	})
}
