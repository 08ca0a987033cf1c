use bench::tokio_on;
use tokio::sync::mpsc;

// As in workload.hpp.
const NUMBERS: usize = 50_000;
const RECEIVERS: usize = 4;
const ROOM: usize = 1024;

// tokio's own broadcast loses what a slow receiver has not taken: a channel for each receiver.
async fn all() -> usize {
    let mut senders = Vec::new();
    let mut receivers = Vec::new();
    for _ in 0..RECEIVERS {
        let (to, mut from) = mpsc::channel(ROOM);
        senders.push(to);
        receivers.push(tokio::spawn(async move {
            let mut sum = 0;
            while let Some(number) = from.recv().await {
                sum += number;
            }
            sum
        }));
    }
    for i in 0..NUMBERS {
        for to in &senders {
            to.send(i).await.unwrap();
        }
    }
    drop(senders);
    let mut sum = 0;
    for one in receivers {
        sum += one.await.unwrap();
    }
    sum
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size());
        state.measure(NUMBERS, RECEIVERS * (NUMBERS * (NUMBERS - 1) / 2), || {
            runtime.block_on(async { tokio::spawn(all()).await.unwrap() })
        })
    });
}
