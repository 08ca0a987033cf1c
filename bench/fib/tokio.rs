use bench::{both, tokio_on, Boxed};

// As in workload.hpp: a task for one child; the other is awaited where its parent is.
const OF: usize = 30;
const RESULT: usize = 832_040;
const CALLS: usize = 2_692_537;

fn fib(n: usize) -> Boxed<usize> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let (a, b) = both(fib(n - 1), fib(n - 2)).await;
        a + b
    })
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size());
        state.measure(CALLS, RESULT, || runtime.block_on(async { tokio::spawn(fib(OF)).await.unwrap() }));
    });
}
