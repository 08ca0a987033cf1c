// A goroutine for one half; the other is a call. Go's compiler does not vectorize the loops, which is most of the distance
// to the programs in C++.
package main

import (
	"bench"
	"runtime"
)

// As in workload.hpp.
const (
	side  = 512
	grain = 64
)

type product struct {
	a, b, c              []float32
	rows, inner, columns int
}

func (p product) add() {
	for i := 0; i != p.rows; i++ {
		c := p.c[i*side:][:p.columns]
		for k := 0; k != p.inner; k++ {
			factor := p.a[i*side+k]
			b := p.b[k*side:][:len(c)]
			for j := range c {
				c[j] += factor * b[j]
			}
		}
	}
}

func multiply(all product) {
	if all.rows <= grain && all.inner <= grain && all.columns <= grain {
		all.add()
		return
	}
	one, other := all, all
	if all.inner > all.rows && all.inner > all.columns { // both halves add to the same numbers
		one.inner, other.inner = all.inner/2, all.inner-all.inner/2
		other.a, other.b = all.a[one.inner:], all.b[one.inner*side:]
		multiply(one)
		multiply(other)
		return
	}
	if all.rows >= all.columns {
		one.rows, other.rows = all.rows/2, all.rows-all.rows/2
		other.a, other.c = all.a[one.rows*side:], all.c[one.rows*side:]
	} else {
		one.columns, other.columns = all.columns/2, all.columns-all.columns/2
		other.b, other.c = all.b[one.columns:], all.c[one.columns:]
	}
	bench.Both(func() { multiply(one) }, func() { multiply(other) })
}

func main() {
	bench.Run(func(state *bench.State) {
		runtime.GOMAXPROCS(state.Size())
		var a, b, expected [side * side]float32
		for i := range a {
			a[i], b[i] = float32(i*7%13), float32(i*5%11)
		}
		whole := func(into []float32) product { return product{a[:], b[:], into, side, side, side} }
		whole(expected[:]).add()
		state.MeasurePrepared(1, 1, func() func() int {
			var c [side * side]float32
			return func() int {
				multiply(whole(c[:]))
				if c == expected {
					return 1
				}
				return 0
			}
		})
	})
}
