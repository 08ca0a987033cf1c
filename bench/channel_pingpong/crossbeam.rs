//! Two threads, on one core where --size is 1.
use crossbeam_channel::bounded;

const ROUNDS: usize = 10_000; // as in workload.hpp

fn both() -> usize {
    let (there, there_end) = bounded(0);
    let (back, back_end) = bounded(0);
    let other = std::thread::spawn(move || {
        for number in there_end {
            back.send(number + 1).unwrap();
        }
    });
    let mut number = 0;
    for _ in 0..ROUNDS {
        there.send(number).unwrap();
        number = back_end.recv().unwrap();
    }
    drop(there);
    other.join().unwrap();
    number
}

fn main() {
    bench::run(|state| state.measure(ROUNDS, ROUNDS, both));
}
