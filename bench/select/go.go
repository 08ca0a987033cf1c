package main

import "bench"

const rounds = 10_000 // as in workload.hpp

func echo(there <-chan int, back chan<- int, never <-chan int) {
	for {
		select {
		case number, open := <-there:
			if !open {
				return
			}
			back <- number + 1
		case <-never:
		}
	}
}

func roundTrips() int {
	there, back, never := make(chan int), make(chan int), make(chan int)
	go echo(there, back, never)
	number := 0
	for i := 0; i != rounds; i++ {
		there <- number
		select {
		case number = <-back:
		case <-never:
		}
	}
	close(there)
	return number
}

func oneReady() int {
	var all [4]chan int
	for i := range all {
		all[i] = make(chan int, 1)
	}
	right := 0
	for i := 0; i != rounds; i++ {
		all[i%4] <- i
		index := 0
		select {
		case <-all[0]:
		case <-all[1]:
			index = 1
		case <-all[2]:
			index = 2
		case <-all[3]:
			index = 3
		}
		if index == i%4 {
			right++
		}
	}
	return right
}

func noneReady() int {
	a, b := make(chan int, 1), make(chan int, 1)
	right := 0
	for i := 0; i != rounds; i++ {
		select {
		case <-a:
		case <-b:
		default:
			right++
		}
	}
	return right
}

func main() {
	bench.Run(func(state *bench.State) {
		body := noneReady
		switch state.Size() {
		case 2:
			body = roundTrips
		case 4:
			body = oneReady
		}
		state.Measure(rounds, rounds, body)
	})
}
