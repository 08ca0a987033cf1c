// A goroutine for one half, of what is sorted and of what is merged; the other is a call. Below the grain it is the standard
// library's sort.
package main

import (
	"bench"
	"runtime"
	"sort"
)

// As in workload.hpp.
const (
	numbers = 1 << 22
	grain   = 2048
)

func merge(left, right, into []uint32) {
	if len(left)+len(right) > grain {
		a, b := len(left)/2, len(right)/2
		if len(left) >= len(right) {
			b = sort.Search(len(right), func(i int) bool { return right[i] >= left[a] })
		} else {
			a = sort.Search(len(left), func(i int) bool { return left[i] > right[b] })
		}
		bench.Both(func() { merge(left[:a], right[:b], into[:a+b]) }, func() { merge(left[a:], right[b:], into[a+b:]) })
		return
	}
	i, j := 0, 0
	for i != len(left) && j != len(right) {
		l, r := left[i], right[j]
		if r < l {
			into[i+j] = r
			j++
		} else {
			into[i+j] = l
			i++
		}
	}
	copy(into[i+j:], left[i:])
	copy(into[i+j:], right[j:])
}

// mergeSort sorts into room if moves, else in place.
func mergeSort(values, room []uint32, moves bool) {
	if len(values) <= grain {
		bench.Sort(values)
		if moves {
			copy(room, values)
		}
		return
	}
	half := len(values) / 2
	bench.Both(func() { mergeSort(values[:half], room[:half], !moves) },
		func() { mergeSort(values[half:], room[half:], !moves) })
	if moves {
		merge(values[:half], values[half:], room)
	} else {
		merge(room[:half], room[half:], values)
	}
}

func unsorted() []uint32 {
	all := make([]uint32, numbers)
	state := uint64(88172645463325252)
	for i := range all {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		all[i] = uint32(state >> 32)
	}
	return all
}

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		state.MeasurePrepared(numbers, 1, func() func() int {
			values, room := unsorted(), make([]uint32, numbers)
			return func() int {
				mergeSort(values, room, false)
				for i := 1; i != numbers; i++ {
					if values[i] < values[i-1] {
						return 0
					}
				}
				return 1
			}
		})
	})
}
