use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

// As in workload.hpp. On one thread the runtime has a worker of its own, too, since the caller does not work for it.
const PRODUCERS: usize = 2;
const POSTS_EACH: usize = 20_000;
const POSTS: usize = PRODUCERS * POSTS_EACH;

fn main() {
    bench::run(|state| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(state.size()).build().unwrap();
        state.measure(POSTS, POSTS, || {
            let ran = Arc::new(AtomicUsize::new(0));
            let caller = std::thread::current();
            let producers: Vec<_> = (0..PRODUCERS)
                .map(|_| {
                    let (handle, ran, caller) = (runtime.handle().clone(), ran.clone(), caller.clone());
                    std::thread::spawn(move || {
                        for _ in 0..POSTS_EACH {
                            let (ran, caller) = (ran.clone(), caller.clone());
                            handle.spawn(async move {
                                if ran.fetch_add(1, Ordering::AcqRel) + 1 == POSTS {
                                    caller.unpark();
                                }
                            });
                        }
                    })
                })
                .collect();
            for one in producers {
                one.join().unwrap();
            }
            while ran.load(Ordering::Acquire) != POSTS {
                std::thread::park();
            }
            POSTS
        });
    });
}
