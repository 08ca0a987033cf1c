package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
)

// As in workload.hpp, without an allocation for an address.
func main() {
	runtime.GOMAXPROCS(1)
	given := os.NewFile(3, "socket")
	any, err := net.FilePacketConn(given) // has a copy of it
	check(err)
	check(given.Close())
	socket := any.(*net.UDPConn)
	buffer := make([]byte, 2048)
	for {
		size, from, err := socket.ReadFromUDPAddrPort(buffer)
		check(err)
		_, err = socket.WriteToUDPAddrPort(buffer[:size], from)
		check(err)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
