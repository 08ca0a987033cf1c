package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// As in queries.hpp: bench_hook_pg_go_pgx THREADS BYTES CONNECTIONS DIRECTORY. A goroutine for each connection.
func main() {
	runtime.GOMAXPROCS(number(1))
	config, err := pgx.ParseConfig("host=" + os.Args[4] + " user=postgres dbname=postgres client_encoding=UTF8 default_query_exec_mode=simple_protocol")
	check(err)
	those := make([]*pgx.Conn, number(3))
	each := func(what func(one int)) {
		var all sync.WaitGroup
		for i := range those {
			all.Add(1)
			go func() { defer all.Done(); what(i) }()
		}
		all.Wait()
	}
	each(func(one int) {
		var err error
		those[one], err = pgx.ConnectConfig(context.Background(), config)
		check(err)
	})
	given := os.NewFile(3, "listener")
	at, err := net.FileListener(given)
	check(err)
	check(given.Close())
	client, err := at.Accept()
	check(err)
	for {
		var count uint64
		check(binary.Read(client, binary.LittleEndian, &count))
		var right atomic.Uint64
		each(func(one int) {
			for range count {
				var got int
				check(those[one].QueryRow(context.Background(), "select 42").Scan(&got))
				if got == 42 {
					right.Add(1)
				}
			}
		})
		check(binary.Write(client, binary.LittleEndian, right.Load()))
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
