package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"runtime"
)

// As in workload.hpp.
func main() {
	runtime.GOMAXPROCS(1)
	own, err := tls.LoadX509KeyPair(os.Args[4], os.Args[5])
	check(err)
	given := os.NewFile(3, "listener")
	raw, err := net.FileListener(given) // has a copy of it
	check(err)
	check(given.Close())
	at := tls.NewListener(raw, &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13})
	for {
		peer, err := at.Accept()
		check(err)
		go echo(peer)
	}
}

func echo(peer net.Conn) {
	defer peer.Close()
	buffer := make([]byte, 16*1024)
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

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
