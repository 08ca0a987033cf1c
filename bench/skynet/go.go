// A goroutine for each child, and one channel for their sums, as in the program that skynet comes from. A hundredth of
// the tree: the whole of it takes several seconds and 2 GB.
package main

import (
	"bench"
	"runtime"
)

const (
	skynetDepth  = 5
	skynetWidth  = 10
	skynetResult = 4_999_950_000
	ofTheWhole   = 0.01
)

func skynet(sums chan<- int, number, depth int) {
	if depth == 0 {
		sums <- number
		return
	}
	below := make(chan int, skynetWidth)
	for i := 0; i != skynetWidth; i++ {
		go skynet(below, number*10+i, depth-1)
	}
	sum := 0
	for i := 0; i != skynetWidth; i++ {
		sum += <-below
	}
	sums <- sum
}

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		state.Measure(ofTheWhole, skynetResult, func() int {
			sum := make(chan int, 1)
			skynet(sum, 0, skynetDepth)
			return <-sum
		})
	})
}
