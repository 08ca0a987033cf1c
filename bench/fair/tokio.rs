// As workload.hpp and latencies.hpp. On one thread the runtime has a worker of its own, too.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

const YIELDING_TASKS: usize = 100;

fn main() {
    bench::run(|state| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(state.size()).build().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..YIELDING_TASKS {
            let over = over.clone();
            runtime.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    tokio::task::yield_now().await;
                }
            });
        }
        let mut all = Vec::new();
        state.measure(1, 1, || {
            let ran = Arc::new(AtomicBool::new(false));
            let start = Instant::now();
            let flag = ran.clone();
            runtime.spawn(async move { flag.store(true, Ordering::Release) });
            while !ran.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            all.push(start.elapsed().as_nanos() as f64 / 1000.0);
            1
        });
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all[(share * (all.len() - 1) as f64) as usize];
        state.report("p50 us", at(0.5));
        state.report("p99 us", at(0.99));
        state.report("p99.9 us", at(0.999));
        over.store(true, Ordering::Relaxed);
    });
}
