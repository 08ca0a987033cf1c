//! Two tasks in a JoinSet: it gives the first result, stops the other and joins it.
use bench::tokio_on;
use std::future::pending;
use tokio::task::JoinSet;

const RACES: usize = 1000; // as in workload.hpp

async fn race() -> usize {
    let mut won = 0;
    for _ in 0..RACES {
        let mut both = JoinSet::new();
        both.spawn(async {
            pending::<()>().await;
            0
        });
        both.spawn(async { 1 });
        won += both.join_next().await.unwrap().unwrap();
        both.shutdown().await;
    }
    won
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(1);
        state.measure(RACES, RACES, || runtime.block_on(race()))
    });
}
