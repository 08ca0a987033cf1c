// What bench/<workload>/go.errgroup.go needs: a module apart, since it comes over the network.
module errgroup

go 1.19

require (
	bench v0.0.0
	golang.org/x/sync v0.7.0
)

replace bench => ../
