//go:build !go1.21

package bench

import "sort"

// Sort is the standard library's best sort for numbers: before Go 1.21, which has slices.Sort, one through an interface.
func Sort(numbers []uint32) { sort.Sort(byValue(numbers)) }

type byValue []uint32

func (n byValue) Len() int           { return len(n) }
func (n byValue) Less(i, j int) bool { return n[i] < n[j] }
func (n byValue) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
