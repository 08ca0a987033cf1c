use bench::tokio_on;

// As in workload.hpp.
const ROUNDS: usize = 1000;

async fn yields() -> usize {
    for _ in 0..ROUNDS {
        tokio::task::yield_now().await;
    }
    ROUNDS
}

async fn all(tasks: usize) -> usize {
    let started: Vec<_> = (0..tasks).map(|_| tokio::spawn(yields())).collect();
    let mut switches = 0;
    for one in started {
        switches += one.await.unwrap();
    }
    switches
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size() % 1000);
        let tasks = if state.size() < 3000 { 1000 } else { 3000 };
        state.measure(tasks * ROUNDS, tasks * ROUNDS, || runtime.block_on(all(tasks)))
    });
}
