use bench::tokio_on;
use std::sync::Arc;
use tokio::sync::Mutex;

const LOCKS: usize = 10_240; // as in workload.hpp

async fn all(contenders: usize) -> usize {
    let number = Arc::new(Mutex::new(0));
    let tasks: Vec<_> = (0..contenders)
        .map(|_| {
            let number = number.clone();
            tokio::spawn(async move {
                for _ in 0..LOCKS / contenders {
                    let mut held = number.lock().await;
                    tokio::task::yield_now().await;
                    *held += 1;
                }
            })
        })
        .collect();
    for one in tasks {
        one.await.unwrap();
    }
    let sum = *number.lock().await;
    sum
}

fn main() {
    bench::run(|state| {
        let contenders = state.size();
        let runtime = tokio_on(1);
        state.measure(LOCKS, LOCKS, || runtime.block_on(all(contenders)))
    });
}
