// As workload.hpp and latencies.hpp. On one thread the runtime has a worker of its own, too.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn processor_time_us() -> f64 {
    let spent = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let own: f64 = spent.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0);
    let mut all = own;
    for thread in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        all += text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0);
    }
    (all - own) / 1000.0
}

fn main() {
    bench::run(|state| {
        let (threads, seconds) = (state.size() % 1000, (state.size() / 1000).max(1));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build().unwrap();
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
        std::thread::sleep(Duration::from_millis(20));
        let before = processor_time_us();
        std::thread::sleep(Duration::from_secs(seconds as u64));
        state.report(&format!("cpu us in {seconds} s idle"), processor_time_us() - before);
    });
}
