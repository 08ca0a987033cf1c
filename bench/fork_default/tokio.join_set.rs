//! A task in a JoinSet, which gives the result of whichever ends next: here of the only one. A call makes no more than
//! 100,000: what ended leaves nothing behind.
use bench::tokio_on;
use tokio::task::JoinSet;

async fn forks(count: usize) -> usize {
    let mut set = JoinSet::new();
    let mut ended = 0;
    while ended != count {
        set.spawn(async {});
        set.join_next().await.unwrap().unwrap();
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
