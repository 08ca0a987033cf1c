// A goroutine for each safe place of a row but the last, which is a call.
package main

import (
	"bench"
	"runtime"
)

// As in workload.hpp.
const (
	queens = 12
	result = 14_200
)

type board [queens]int8

func isSafe(placed *board, row, column int) bool {
	for above, other := range placed[:row] {
		aside, distance := column-int(other), row-above
		if aside == 0 || aside == distance || aside == -distance {
			return false
		}
	}
	return true
}

func place(placed board, row int) int {
	if row == queens {
		return 1
	}
	var safe [queens]int8
	count := 0
	for column := 0; column != queens; column++ {
		if isSafe(&placed, row, column) {
			safe[count] = int8(column)
			count++
		}
	}
	return bench.Sum(count, func(i int) int {
		next := placed
		next[row] = safe[i]
		return place(next, row+1)
	})
}

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		state.Measure(1, result, func() int { return place(board{}, 0) })
	})
}
