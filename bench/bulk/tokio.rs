// As in workload.hpp. On one thread the runtime has a worker of its own, too.
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use tokio::runtime::{Builder, Handle};

const TASKS: usize = 10_000;

#[allow(clippy::declare_interior_mutable_const)]
const UNMARKED: AtomicU8 = AtomicU8::new(0);
static MARKS: [AtomicU8; TASKS] = [UNMARKED; TASKS];

async fn spawn_and_join(on: Handle) -> usize {
    let all: Vec<_> = (0..TASKS)
        .map(|which| on.spawn(async move { MARKS[which].store(1, Relaxed) }))
        .collect();
    for each in all {
        each.await.unwrap();
    }
    let mut set = 0;
    for mark in &MARKS {
        set += usize::from(mark.load(Relaxed));
        mark.store(0, Relaxed);
    }
    set
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
