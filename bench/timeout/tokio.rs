//! Its channels have room for one at least.
use bench::tokio_with_timers;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

const ROUNDS: usize = 10_000; // as in workload.hpp

async fn both(limit: Duration) -> usize {
    let (there, mut there_end) = mpsc::channel(1);
    let (back, mut back_end) = mpsc::channel(1);
    let echo = tokio::spawn(async move {
        while let Some(number) = there_end.recv().await {
            back.send(number + 1).await.unwrap();
        }
    });
    let mut number = 0;
    for _ in 0..ROUNDS {
        there.send(number).await.unwrap();
        number = if limit.is_zero() {
            back_end.recv().await.unwrap()
        } else {
            timeout(limit, back_end.recv()).await.unwrap().unwrap()
        };
    }
    drop(there);
    echo.await.unwrap();
    number
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_with_timers();
        let limit = Duration::from_secs(state.size() as u64);
        state.measure(ROUNDS, ROUNDS, || {
            runtime.block_on(async { tokio::spawn(both(limit)).await.unwrap() })
        })
    });
}
