//! Its channels have room for one at least.
use bench::tokio_on;
use tokio::sync::mpsc;

const ROUNDS: usize = 10_000; // as in workload.hpp

async fn both() -> usize {
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
        number = back_end.recv().await.unwrap();
    }
    drop(there);
    echo.await.unwrap();
    number
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size());
        state.measure(ROUNDS, ROUNDS, || {
            runtime.block_on(async { tokio::spawn(both()).await.unwrap() })
        })
    });
}
