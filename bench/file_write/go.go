package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// As in client.hpp: bench_file_write_go THREADS BYTES AT-ONCE PATH KIND FILE-BYTES. WriteAt of a file, by so many goroutines.
func main() {
	runtime.GOMAXPROCS(number(1))
	size, atOnce, path, kind := number(2), number(3), os.Args[4], os.Args[5]
	blocks := uint64(number(6) / size)
	to, err := os.OpenFile(path, os.O_WRONLY, 0)
	check(err)
	given := os.NewFile(3, "listener")
	at, err := net.FileListener(given)
	check(err)
	check(given.Close())
	client, err := at.Accept()
	check(err)
	for {
		var count uint64
		check(binary.Read(client, binary.LittleEndian, &count))
		check(binary.Write(client, binary.LittleEndian, write(to, size, atOnce, blocks, kind, count)))
	}
}

func write(to *os.File, size, atOnce int, blocks uint64, kind string, count uint64) uint64 {
	var next, right atomic.Uint64
	var all sync.WaitGroup
	for i := 0; i < atOnce; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			piece := make([]byte, size)
			for one := next.Add(1) - 1; one < count; one = next.Add(1) - 1 {
				block := one % blocks
				if kind != "stream" {
					block = one * 2654435761 % blocks
				}
				binary.LittleEndian.PutUint64(piece, one)
				put, err := to.WriteAt(piece, int64(block)*int64(size))
				if err == nil && kind == "sync" {
					err = syscall.Fdatasync(int(to.Fd()))
				}
				if err == nil && put == size {
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
