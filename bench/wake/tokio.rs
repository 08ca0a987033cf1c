// As workload.hpp and latencies.hpp. The runtime has a worker of its own.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() {
    bench::run(|state| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_io().build().unwrap();
        runtime.spawn(async {
            let at = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let _ = at.accept().await;
        });
        let mut all = Vec::new();
        state.measure_prepared(
            1,
            1,
            || std::thread::sleep(Duration::from_millis(2)),
            |_| {
                let ran = Arc::new(AtomicBool::new(false));
                let start = Instant::now();
                let flag = ran.clone();
                runtime.spawn(async move { flag.store(true, Ordering::Release) });
                while !ran.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                all.push(start.elapsed().as_nanos() as f64 / 1000.0);
                1
            },
        );
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all[(share * (all.len() - 1) as f64) as usize];
        state.report("p50 us", at(0.5));
        state.report("p99 us", at(0.99));
        state.report("p99.9 us", at(0.999));
        runtime.shutdown_background();
    });
}
