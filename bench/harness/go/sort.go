//go:build go1.21

package bench

import "slices"

// Sort is the standard library's best sort for numbers.
func Sort(numbers []uint32) { slices.Sort(numbers) }
