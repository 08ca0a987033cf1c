//! A tree of tasks, each with a JoinSet of its children. One that is stopped drops its set, which stops those in it and joins
//! none: so the clock runs until each leaf has counted itself.
use bench::tokio_on;
use std::future::{pending, Future};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use tokio::task::{yield_now, JoinSet};

const CHILDREN: usize = 10; // as in workload.hpp

#[derive(Default)]
struct Counts {
    waiting: AtomicUsize,
    ended: AtomicUsize,
}

struct LeafEnds(Arc<Counts>);
impl Drop for LeafEnds {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Relaxed);
    }
}

async fn leaf(counts: Arc<Counts>) {
    counts.waiting.fetch_add(1, Relaxed);
    let _here = LeafEnds(counts);
    pending().await
}

fn node(leaves: usize, counts: Arc<Counts>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let mut children = JoinSet::new();
        for _ in 0..CHILDREN {
            if leaves <= CHILDREN {
                children.spawn(leaf(counts.clone()));
            } else {
                children.spawn(node(leaves / CHILDREN, counts.clone()));
            }
        }
        while children.join_next().await.is_some() {}
    })
}

fn main() {
    bench::run(|state| {
        let leaves = state.size();
        let runtime = tokio_on(1);
        let grow = || {
            let counts = Arc::new(Counts::default());
            let mut whole = JoinSet::new();
            runtime.block_on(async {
                whole.spawn(node(leaves, counts.clone()));
                while counts.waiting.load(Relaxed) != leaves {
                    yield_now().await;
                }
            });
            (whole, counts)
        };
        state.measure_prepared(leaves, leaves, grow, |(whole, counts)| {
            runtime.block_on(async {
                whole.shutdown().await;
                while counts.ended.load(Relaxed) != leaves {
                    yield_now().await;
                }
            });
            counts.ended.load(Relaxed)
        })
    });
}
