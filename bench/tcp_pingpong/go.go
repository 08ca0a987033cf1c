package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
)

// As in workload.hpp: bench_tcp_pingpong_go THREADS BYTES.
func main() {
	threads, bytes := number(1), number(2)
	runtime.GOMAXPROCS(threads)
	given := os.NewFile(3, "listener")
	at, err := net.FileListener(given) // has a copy of it
	check(err)
	check(given.Close())
	for {
		peer, err := at.Accept()
		check(err)
		go echo(peer, bytes)
	}
}

func echo(peer net.Conn, bytes int) {
	defer peer.Close()
	buffer := make([]byte, bytes)
	for {
		size, err := peer.Read(buffer)
		if err != nil {
			return
		}
		if _, err := peer.Write(buffer[:size]); err != nil {
			return
		}
	}
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
