// As in workload.hpp. On one thread the runtime has a worker of its own, too.
use tokio::runtime::{Builder, Handle};

const TASKS: usize = 10_000;

async fn spawn_and_join(on: Handle) -> usize {
    let all: Vec<_> = (0..TASKS).map(|_| on.spawn(async {})).collect();
    let mut ended = 0;
    for each in all {
        each.await.unwrap();
        ended += 1;
    }
    ended
}

fn main() {
    bench::run(|state| {
        let size = state.size();
        let runtime = Builder::new_multi_thread().worker_threads(size % 100).build().unwrap();
        let on = runtime.handle();
        state.measure(TASKS, TASKS, || {
            if size < 100 {
                runtime.block_on(spawn_and_join(on.clone()))
            } else {
                runtime.block_on(async { on.spawn(spawn_and_join(on.clone())).await.unwrap() })
            }
        });
    });
}
