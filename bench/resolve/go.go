package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// As in client.cpp: bench_resolve_go THREADS BYTES AT-ONCE. By Go's own resolver.
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
		check(binary.Write(client, binary.LittleEndian, lookUp(count, atOnce)))
	}
}

func lookUp(count uint64, atOnce int) uint64 {
	resolver := &net.Resolver{PreferGo: true}
	expected := netip.MustParseAddr("127.0.0.7")
	var next, right atomic.Uint64
	var all sync.WaitGroup
	for i := 0; i < atOnce; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for one := next.Add(1) - 1; one < count; one = next.Add(1) - 1 {
				host := fmt.Sprintf("host-%d.bench.test", one%1000)
				found, err := resolver.LookupNetIP(context.Background(), "ip", host)
				if err == nil && len(found) == 2 && found[0].Unmap() == expected {
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
