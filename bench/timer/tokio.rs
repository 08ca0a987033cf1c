//! A timer is armed when its future is polled first, and cancelled where that is dropped.
use bench::tokio_with_timers;
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{sleep_until, Instant, Sleep};

// As in workload.hpp.
const ROUNDS: usize = 10_000;
const BATCH: usize = 1000;
const LIMIT: Duration = Duration::from_secs(5);

fn arm(one: Pin<&mut Sleep>) -> usize {
    (one.poll(&mut Context::from_waker(Waker::noop())) == Poll::Pending) as usize
}

fn beside(count: usize) -> Vec<Pin<Box<Sleep>>> {
    let now = Instant::now();
    let mut random: u64 = 1;
    (0..count)
        .map(|_| {
            random = random * 48271 % 0x7fff_ffff;
            let mut one = Box::pin(sleep_until(now + Duration::from_millis(10_000 + random % 60_000)));
            arm(one.as_mut());
            one
        })
        .collect()
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_with_timers();
        let _inside = runtime.enter();
        if state.size() == 2 {
            let (there, ask) = sync_channel::<Vec<Pin<Box<Sleep>>>>(1);
            let (done, answers) = sync_channel::<Vec<Pin<Box<Sleep>>>>(1);
            std::thread::spawn(move || {
                for mut batch in ask {
                    batch.clear();
                    done.send(batch).unwrap();
                }
            });
            let mut batch = Vec::with_capacity(BATCH);
            state.measure(ROUNDS, ROUNDS, || {
                let at = Instant::now() + LIMIT;
                let mut armed = 0;
                for _ in 0..ROUNDS / BATCH {
                    for _ in 0..BATCH {
                        let mut one = Box::pin(sleep_until(at));
                        armed += arm(one.as_mut());
                        batch.push(one);
                    }
                    there.send(std::mem::take(&mut batch)).unwrap();
                    batch = answers.recv().unwrap();
                }
                armed
            });
            return;
        }
        let _beside = beside(if state.size() > 2 { state.size() } else { 0 });
        state.measure(ROUNDS, ROUNDS, || {
            let at = Instant::now() + LIMIT;
            let mut armed = 0;
            for _ in 0..ROUNDS {
                let one = pin!(sleep_until(at));
                armed += arm(one);
            }
            armed
        })
    });
}
