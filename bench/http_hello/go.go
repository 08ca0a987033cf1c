package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
)

// As in workload.hpp: bench_http_hello_go THREADS BYTES.
func main() {
	threads, err := strconv.Atoi(os.Args[1])
	check(err)
	runtime.GOMAXPROCS(threads)
	given := os.NewFile(3, "listener")
	at, err := net.FileListener(given) // has a copy of it
	check(err)
	check(given.Close())
	check(http.Serve(at, http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
		to.Header().Set("Content-Type", "text/plain")
		io.WriteString(to, "Hello, world\n")
	})))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
