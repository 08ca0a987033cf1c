// The same queries by pgx: a goroutine for each connection. `pgx DIRECTORY CONNECTIONS QUERIES`.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

func processorTime() float64 {
	var use syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &use)
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

func privateMemory() (sum int) {
	text, _ := os.ReadFile("/proc/self/smaps_rollup")
	for _, line := range strings.Split(string(text), "\n") {
		if words := strings.Fields(line); strings.HasPrefix(line, "Private_") && !strings.HasPrefix(line, "Private_Hugetlb") {
			size, _ := strconv.Atoi(words[1])
			sum += size
		}
	}
	return
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	connections, _ := strconv.Atoi(os.Args[2])
	queries, _ := strconv.Atoi(os.Args[3])
	ctx := context.Background()
	// The simple protocol, which libpq's PQexec uses, too.
	config, err := pgx.ParseConfig("host=" + os.Args[1] + " user=postgres dbname=postgres client_encoding=UTF8 default_query_exec_mode=simple_protocol")
	must(err)
	those := make([]*pgx.Conn, connections)
	each := func(what func(i int)) {
		var all sync.WaitGroup
		for i := range those {
			all.Add(1)
			go func() { defer all.Done(); what(i) }()
		}
		all.Wait()
	}
	each(func(i int) {
		var err error
		those[i], err = pgx.ConnectConfig(ctx, config)
		must(err)
	})
	processor, begun := processorTime(), time.Now()
	each(func(i int) {
		for range queries {
			var got int
			must(those[i].QueryRow(ctx, "select 42").Scan(&got))
			if got != 42 {
				must(fmt.Errorf("%d is wrong", got))
			}
		}
	})
	took, count := time.Since(begun).Seconds(), float64(connections*queries)
	fmt.Printf("%.0f queries/s, %.2f us each of processor time, %d KiB\n", count/took, 1e6*(processorTime()-processor)/count, privateMemory())
}
