use bench::tokio_on;
use std::future::Future;
use std::pin::Pin;

// As in workload.hpp, a task for each child. A hundredth of the tree: of the whole of it most tasks are alive at once, since
// a worker's line is first in, first out.
const DEPTH: usize = 5;
const WIDTH: usize = 10;
const RESULT: usize = 4_999_950_000;
const OF_THE_WHOLE: f64 = 0.01;

fn skynet(number: usize, depth: usize) -> Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(async move {
        if depth == 0 {
            return number;
        }
        let below: Vec<_> = (0..WIDTH).map(|i| tokio::spawn(skynet(number * 10 + i, depth - 1))).collect();
        let mut sum = 0;
        for each in below {
            sum += each.await.unwrap();
        }
        sum
    })
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size());
        state.measure_share(OF_THE_WHOLE, RESULT, || {
            runtime.block_on(async { tokio::spawn(skynet(0, DEPTH)).await.unwrap() })
        });
    });
}
