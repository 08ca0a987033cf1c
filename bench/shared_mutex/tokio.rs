use bench::tokio_on;
use std::hint::black_box;
use std::sync::Arc;
use tokio::sync::RwLock;

// As in workload.hpp.
const LOCKS: usize = 102_400;
const READS_A_WRITE: usize = 100;

async fn all(contenders: usize) -> usize {
    let number = Arc::new(RwLock::new(0));
    let tasks: Vec<_> = (0..contenders)
        .map(|_| {
            let number = number.clone();
            tokio::spawn(async move {
                let mut seen = 0;
                for time in 1..=LOCKS / contenders {
                    if time % READS_A_WRITE == 0 {
                        *number.write().await += 1;
                    } else {
                        seen += *number.read().await;
                    }
                }
                black_box(seen);
            })
        })
        .collect();
    for one in tasks {
        one.await.unwrap();
    }
    let sum = *number.read().await;
    sum
}

fn main() {
    bench::run(|state| {
        let contenders = state.size();
        let runtime = tokio_on(if contenders == 1 { 1 } else { 2 });
        let writes = contenders * (LOCKS / contenders / READS_A_WRITE);
        state.measure(LOCKS, writes, || runtime.block_on(all(contenders)))
    });
}
