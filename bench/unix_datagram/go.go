package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
)

// As in workload.hpp.
func main() {
	runtime.GOMAXPROCS(1)
	given := os.NewFile(3, "socket")
	any, err := net.FileConn(given) // has a copy of it
	check(err)
	check(given.Close())
	socket := any.(*net.UnixConn)
	buffer := make([]byte, 2048)
	for {
		size, err := socket.Read(buffer)
		check(err)
		_, err = socket.Write(buffer[:size])
		check(err)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
