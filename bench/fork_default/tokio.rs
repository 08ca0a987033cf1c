//! A task that is spawned, and its handle awaited. A call makes no more than 100,000: what ended leaves nothing behind.
use bench::tokio_on;

async fn forks(count: usize) -> usize {
    let mut ended = 0;
    while ended != count {
        tokio::spawn(async {}).await.unwrap();
        ended += 1;
    }
    ended
}

fn main() {
    bench::run(|state| {
        let count = state.size().min(100_000);
        let runtime = tokio_on(1);
        state.measure(count, count, || runtime.block_on(forks(count)))
    });
}
