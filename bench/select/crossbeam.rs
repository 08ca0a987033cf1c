//! The round trip is between two threads, on one core.
use crossbeam_channel::{bounded, select, Receiver, Sender};

const ROUNDS: usize = 10_000; // as in workload.hpp

fn echo(there: Receiver<usize>, back: Sender<usize>, never: Receiver<usize>) {
    loop {
        select! {
            recv(there) -> number => match number {
                Ok(number) => back.send(number + 1).unwrap(),
                Err(_) => return,
            },
            recv(never) -> _ => return,
        }
    }
}

fn round_trips() -> usize {
    let (there, there_end) = bounded(0);
    let (back, back_end) = bounded(0);
    let (_to_never, never) = bounded(0);
    let never_for_echo = never.clone();
    let other = std::thread::spawn(move || echo(there_end, back, never_for_echo));
    let mut number = 0;
    for _ in 0..ROUNDS {
        there.send(number).unwrap();
        select! {
            recv(back_end) -> next => number = next.unwrap(),
            recv(never) -> _ => {}
        }
    }
    drop(there);
    other.join().unwrap();
    number
}

fn one_ready() -> usize {
    let all = [bounded(1), bounded(1), bounded(1), bounded(1)];
    let mut right = 0;
    for i in 0..ROUNDS {
        all[i % 4].0.send(i).unwrap();
        let index = select! {
            recv(all[0].1) -> _ => 0,
            recv(all[1].1) -> _ => 1,
            recv(all[2].1) -> _ => 2,
            recv(all[3].1) -> _ => 3,
        };
        right += usize::from(index == i % 4);
    }
    right
}

fn none_ready() -> usize {
    let (_to_a, a) = bounded::<usize>(1);
    let (_to_b, b) = bounded::<usize>(1);
    let mut right = 0;
    for _ in 0..ROUNDS {
        select! {
            recv(a) -> _ => {}
            recv(b) -> _ => {}
            default => right += 1,
        }
    }
    right
}

fn main() {
    bench::run(|state| {
        let body = match state.size() {
            2 => round_trips,
            4 => one_ready,
            _ => none_ready,
        };
        state.measure(ROUNDS, ROUNDS, body)
    });
}
