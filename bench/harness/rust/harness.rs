//! What harness.hpp is to the programs in C++: it times an adapter in Rust, bench/<workload>/<crate>.rs, and prints the same
//! line of JSON.
//!
//!     fn main() { bench::run(|state| state.measure(items, expected, || body())) }

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

const WANTED_BATCHES: u32 = 30;
const FEWEST_BATCHES: usize = 3;
const SHORTEST_BATCH: Duration = Duration::from_micros(200); // reading the clock must not show
const TOO_LONG_TO_REPEAT: Duration = Duration::from_secs(5); // the first call is the figure

/// One round of one workload.
pub struct State {
    size: usize,
    full: bool,
    switches: usize,
    warm_up: Duration,
    budget: Duration,
    own_rss: usize, // KiB, before the workload began
    wall: Vec<f64>, // ns an item, one a batch
    cpu: Vec<f64>,
    measured: f64,
    extra: Vec<String>,
}

impl State {
    /// The workload's parameter.
    pub fn size(&self) -> usize {
        self.size
    }

    /// In a full run: the workload at its own length.
    pub fn full(&self) -> bool {
        self.full
    }

    /// How often each coroutine is to be switched to, where the workload can be told; 0: as the workload says.
    pub fn switches(&self) -> usize {
        self.switches
    }

    /// Adds a figure that only this adapter knows.
    pub fn report(&mut self, name: &str, value: f64) {
        self.extra.push(format!("\"{name}\":{value}"));
    }

    /// Times `body` again and again until the round's time is used up. Each call does so many items of work, and its result
    /// must be the expected one. The first part of the time warms up and finds out how many calls make a batch.
    pub fn measure(&mut self, items: usize, expected: usize, body: impl FnMut() -> usize) {
        self.measure_share(items as f64, expected, body);
    }

    /// The same, where a call does only a part of an item.
    pub fn measure_share(&mut self, items: f64, expected: usize, mut body: impl FnMut() -> usize) {
        self.measure_batches(items, |calls| {
            let (cpu, start) = (processor_time(), Instant::now());
            let mut right = true;
            for _ in 0..calls {
                right &= std::hint::black_box(body()) == expected;
            }
            let took = (start.elapsed(), processor_time() - cpu);
            verify(right);
            took
        });
    }

    /// Times one call of `body`, without a warm-up: for a program whose length was given.
    pub fn measure_once(&mut self, items: usize, expected: usize, body: impl FnOnce() -> usize) {
        let (cpu, start) = (processor_time(), Instant::now());
        let right = std::hint::black_box(body()) == expected;
        let (wall, cpu) = (start.elapsed(), processor_time() - cpu);
        verify(right);
        self.add(wall, cpu, items as f64);
    }

    /// As `measure`; each call gets something fresh from `prepare`, which is made and goes outside the clock.
    pub fn measure_prepared<T>(
        &mut self,
        items: usize,
        expected: usize,
        mut prepare: impl FnMut() -> T,
        mut body: impl FnMut(&mut T) -> usize,
    ) {
        self.measure_batches(items as f64, |calls| {
            let mut took = (Duration::ZERO, Duration::ZERO);
            for _ in 0..calls {
                let mut with = prepare();
                let (cpu, start) = (processor_time(), Instant::now());
                let right = std::hint::black_box(body(&mut with)) == expected;
                took = (took.0 + start.elapsed(), took.1 + processor_time() - cpu);
                verify(right);
            }
            took
        });
    }

    fn measure_batches(&mut self, items: f64, mut batch: impl FnMut(usize) -> (Duration, Duration)) {
        let mut batch = |calls| {
            let (wall, cpu) = batch(calls);
            (wall.max(Duration::from_nanos(1)), cpu)
        };
        let mut calls = 1;
        let start = Instant::now();
        loop {
            let (wall, cpu) = batch(calls);
            if wall >= TOO_LONG_TO_REPEAT {
                return self.add(wall, cpu, calls as f64 * items);
            }
            let target = (self.budget / WANTED_BATCHES).max(SHORTEST_BATCH).as_secs_f64();
            let wanted = target * calls as f64 / wall.as_secs_f64();
            calls = wanted.min(calls as f64 * 100.0).max(1.0) as usize; // one short reading must not decide
            if start.elapsed() >= self.warm_up {
                break;
            }
        }
        let start = Instant::now();
        while start.elapsed() < self.budget || self.wall.len() < FEWEST_BATCHES {
            let (wall, cpu) = batch(calls);
            self.add(wall, cpu, calls as f64 * items);
        }
    }

    fn add(&mut self, wall: Duration, cpu: Duration, items: f64) {
        self.wall.push(wall.as_nanos() as f64 / items);
        self.cpu.push(cpu.as_nanos() as f64 / items);
        self.measured += items;
    }
}

/// main(): one round by the options of harness/main.cpp.
pub fn run(adapter: impl FnOnce(&mut State)) {
    let mut state = State {
        size: 0,
        full: false,
        switches: 0,
        warm_up: Duration::from_millis(50),
        budget: Duration::from_millis(200),
        own_rss: status_kib("VmRSS:"),
        wall: vec![],
        cpu: vec![],
        measured: 0.0,
        extra: vec![],
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let Some(value) = arguments.next().and_then(|value| value.parse::<u64>().ok()) else {
            fail(&format!("{option} needs a value"));
        };
        match option.as_str() {
            "--size" => state.size = value as usize,
            "--ms" => state.budget = Duration::from_millis(value),
            "--warm-up" => state.warm_up = Duration::from_millis(value),
            "--full" => state.full = value != 0,
            "--switches" => state.switches = value as usize,
            _ => fail(&format!("unknown option {option}")),
        }
    }
    adapter(&mut state);
    if state.wall.is_empty() {
        fail("the adapter measured nothing");
    }
    println!(
        "{{\"ns\":{},\"cpu_ns\":{},\"batches\":{},\"items\":{},\"size\":{},\"peak_rss_kib\":{},\"start_rss_kib\":{},\
         \"allocator\":\"glibc\",\"extra\":{{{}}}}}",
        median(&mut state.wall),
        median(&mut state.cpu),
        state.wall.len(),
        state.measured,
        state.size,
        status_kib("VmHWM:"),
        state.own_rss,
        state.extra.join(",")
    );
}

fn verify(right: bool) {
    if !right {
        fail("the workload's result is not the expected one");
    }
}

fn fail(sentence: &str) -> ! {
    eprintln!("{}: {sentence}", std::env::args().next().unwrap_or_default());
    std::process::exit(1)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn processor_time() -> Duration {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    extern "C" {
        fn clock_gettime(clock: i32, now: *mut Timespec) -> i32;
    }
    const PROCESS_CPUTIME: i32 = 2;
    let mut now = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    unsafe { clock_gettime(PROCESS_CPUTIME, &mut now) };
    Duration::new(now.seconds as u64, now.nanoseconds as u32)
}

/// A line such as "VmHWM:  1234 kB" of /proc/self/status.
fn status_kib(key: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// The runtime of tokio for so many threads. On one it is the caller's; else what is spawned has threads of its own.
pub fn tokio_on(threads: usize) -> tokio::runtime::Runtime {
    if threads == 1 {
        return tokio::runtime::Builder::new_current_thread().build().unwrap();
    }
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .build()
        .unwrap()
}

/// The caller's own, with timers.
pub fn tokio_with_timers() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// What a coroutine returns that awaits another one of itself.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A task for the first; the second is awaited here.
pub async fn both<T: Send + 'static>(
    first: impl Future<Output = T> + Send + 'static,
    second: impl Future<Output = T>,
) -> (T, T) {
    let first = tokio::spawn(first);
    let second = second.await;
    (first.await.unwrap(), second)
}

/// What the programs of `resolve` do, see its lookups.hpp: `at_once` tasks look names up by `look_up`, which says whether what
/// it has found is right.
pub async fn serve_lookups<LookUp, Found>(at_once: u64, look_up: LookUp) -> std::io::Result<()>
where
    LookUp: Fn(String) -> Found + Clone + Send + Sync + 'static,
    Found: std::future::Future<Output = bool> + Send,
{
    use std::os::fd::FromRawFd;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let at = tokio::net::TcpListener::from_std(unsafe { std::net::TcpListener::from_raw_fd(3) })?;
    let mut client = at.accept().await?.0;
    loop {
        let count = client.read_u64_le().await?;
        let next = Arc::new(AtomicU64::new(0));
        let right = Arc::new(AtomicU64::new(0));
        let look_up_some = |next: Arc<AtomicU64>, right: Arc<AtomicU64>, look_up: LookUp| async move {
            loop {
                let one = next.fetch_add(1, Relaxed);
                if one >= count {
                    return;
                }
                if look_up(format!("host-{}.bench.test", one % 1000)).await {
                    right.fetch_add(1, Relaxed);
                }
            }
        };
        let those: Vec<_> =
            (0..at_once).map(|_| tokio::spawn(look_up_some(next.clone(), right.clone(), look_up.clone()))).collect();
        for one in those {
            one.await?;
        }
        client.write_u64_le(right.load(Relaxed)).await?;
    }
}
