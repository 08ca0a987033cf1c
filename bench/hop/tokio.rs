// A task does not move: it spawns one on the other runtime, and awaits that.
use tokio::runtime::{Builder, Handle, Runtime};

// As in workload.hpp.
const TASKS: usize = 100;
const ROUNDS: usize = 100;

async fn hop(other: Handle) -> usize {
    for _ in 0..ROUNDS {
        other.spawn(async {}).await.unwrap();
    }
    ROUNDS
}

fn on_one_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).build().unwrap()
}

fn main() {
    bench::run(|state| {
        let (one, other) = (on_one_thread(), on_one_thread());
        state.measure(TASKS * ROUNDS, TASKS * ROUNDS, || {
            let started: Vec<_> = (0..TASKS).map(|_| one.spawn(hop(other.handle().clone()))).collect();
            one.block_on(async {
                let mut hops = 0;
                for each in started {
                    hops += each.await.unwrap();
                }
                hops
            })
        });
    });
}
