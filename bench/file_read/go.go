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
	"unsafe"
)

// As in client.hpp: bench_file_read_go THREADS BYTES AT-ONCE PATH KIND FILE-BYTES. ReadAt of a file, by so many goroutines.
func main() {
	runtime.GOMAXPROCS(number(1))
	size, atOnce, path, kind := number(2), number(3), os.Args[4], os.Args[5]
	blocks := uint64(number(6) / size)
	flags := os.O_RDONLY
	if kind == "direct" {
		flags |= syscall.O_DIRECT
	}
	from, err := os.OpenFile(path, flags, 0)
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
		check(binary.Write(client, binary.LittleEndian, read(from, size, atOnce, blocks, kind == "stream", count)))
	}
}

func read(from *os.File, size, atOnce int, blocks uint64, inOrder bool, count uint64) uint64 {
	var next, right atomic.Uint64
	var all sync.WaitGroup
	for i := 0; i < atOnce; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			buffer := aligned(size)
			for one := next.Add(1) - 1; one < count; one = next.Add(1) - 1 {
				block := one % blocks
				if !inOrder {
					block = one * 2654435761 % blocks
				}
				got, err := from.ReadAt(buffer, int64(block)*int64(size))
				if err == nil && got == size && binary.LittleEndian.Uint64(buffer) == block*uint64(size/4096) {
					right.Add(1)
				}
			}
		}()
	}
	all.Wait()
	return right.Load()
}

func aligned(size int) []byte {
	whole := make([]byte, size+4096)
	skip := (4096 - int(uintptr(unsafe.Pointer(&whole[0]))%4096)) % 4096
	return whole[skip : skip+size]
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
