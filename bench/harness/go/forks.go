package bench

import "sync"

// Both calls f in a goroutine and g here, and waits for f.
func Both(f, g func()) {
	var other sync.WaitGroup
	other.Add(1)
	go func() {
		defer other.Done()
		f()
	}()
	g()
	other.Wait()
}

// Sum is of(0) + … + of(count-1): the last is a call, each of the others a goroutine's.
func Sum(count int, of func(int) int) int {
	if count == 0 {
		return 0
	}
	sums := make([]int, count)
	var others sync.WaitGroup
	others.Add(count - 1)
	for i := 0; i != count-1; i++ {
		go func(i int) {
			defer others.Done()
			sums[i] = of(i)
		}(i)
	}
	sums[count-1] = of(count - 1)
	others.Wait()
	sum := 0
	for _, each := range sums {
		sum += each
	}
	return sum
}
