//! Two threads, on one core where --size is 1.
use crossbeam_channel::bounded;

// As in workload.hpp.
const NUMBERS: usize = 100_000;
const ROOM: usize = 1024;

fn both() -> usize {
    let (to, from) = bounded(ROOM);
    let sender = std::thread::spawn(move || {
        for i in 0..NUMBERS {
            to.send(i).unwrap();
        }
    });
    let sum = from.iter().sum();
    sender.join().unwrap();
    sum
}

fn main() {
    bench::run(|state| state.measure(NUMBERS, NUMBERS * (NUMBERS - 1) / 2, both));
}
