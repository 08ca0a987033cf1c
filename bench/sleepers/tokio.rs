use bench::tokio_with_timers;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{yield_now, JoinSet, LocalSet};
use tokio::time::sleep;

async fn all(count: usize) -> usize {
    let begun = Rc::new(Cell::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let begun = begun.clone();
        tasks.spawn_local(async move {
            begun.set(begun.get() + 1);
            sleep(Duration::from_secs(3600)).await;
        });
    }
    while begun.get() != count {
        yield_now().await;
    }
    tasks.shutdown().await;
    count
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_with_timers();
        let count = state.size();
        state.measure(count, count, || LocalSet::new().block_on(&runtime, all(count)))
    });
}
