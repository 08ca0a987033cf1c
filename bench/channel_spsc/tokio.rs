use bench::tokio_on;
use tokio::sync::mpsc;

// As in workload.hpp.
const NUMBERS: usize = 100_000;
const ROOM: usize = 1024;

async fn both() -> usize {
    let (to, mut from) = mpsc::channel(ROOM);
    let sender = tokio::spawn(async move {
        for i in 0..NUMBERS {
            to.send(i).await.unwrap();
        }
    });
    let mut sum = 0;
    while let Some(number) = from.recv().await {
        sum += number;
    }
    sender.await.unwrap();
    sum
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size());
        state.measure(NUMBERS, NUMBERS * (NUMBERS - 1) / 2, || {
            runtime.block_on(async { tokio::spawn(both()).await.unwrap() })
        })
    });
}
