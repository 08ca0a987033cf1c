use bench::tokio_on;

// As in workload.hpp.
const TASKS: usize = 1000;
const ROUNDS: usize = 1000;

async fn yields() -> usize {
    for _ in 0..ROUNDS {
        tokio::task::yield_now().await;
    }
    ROUNDS
}

async fn all() -> usize {
    let tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(yields())).collect();
    let mut switches = 0;
    for one in tasks {
        switches += one.await.unwrap();
    }
    switches
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size());
        state.measure(TASKS * ROUNDS, TASKS * ROUNDS, || runtime.block_on(all()))
    });
}
