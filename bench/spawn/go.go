package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// As in client.cpp: bench_spawn_go THREADS BYTES AT-ONCE.
func main() {
	runtime.GOMAXPROCS(number(1))
	atOnce := number(3)
	given := os.NewFile(3, "listener")
	at, err := net.FileListener(given)
	check(err)
	check(given.Close())
	client, err := at.Accept()
	check(err)
	for {
		var count uint64
		check(binary.Read(client, binary.LittleEndian, &count))
		check(binary.Write(client, binary.LittleEndian, runAll(count, atOnce)))
	}
}

func runAll(count uint64, atOnce int) uint64 {
	var next, right atomic.Uint64
	var all sync.WaitGroup
	for i := 0; i < atOnce; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for next.Add(1) <= count {
				if exec.Command("/bin/true").Run() == nil {
					right.Add(1)
				}
			}
		}()
	}
	all.Wait()
	return right.Load()
}

func number(which int) int {
	value, err := strconv.Atoi(os.Args[which])
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
