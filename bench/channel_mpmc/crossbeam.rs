//! Eight threads.
use crossbeam_channel::bounded;
use std::thread::spawn;

// As in workload.hpp.
const SENDERS: usize = 4;
const RECEIVERS: usize = 4;
const ROOM: usize = 1024;

fn all(count: usize) -> usize {
    let (to, from) = bounded(ROOM);
    let each = count / SENDERS;
    for i in 0..SENDERS {
        let to = to.clone();
        spawn(move || (i * each..(i + 1) * each).for_each(|number| to.send(number).unwrap()));
    }
    drop(to);
    let receivers: Vec<_> = (0..RECEIVERS)
        .map(|_| {
            let from = from.clone();
            spawn(move || from.iter().sum::<usize>())
        })
        .collect();
    receivers.into_iter().map(|one| one.join().unwrap()).sum()
}

fn main() {
    bench::run(|state| {
        let count = state.size();
        state.measure(count, count * (count - 1) / 2, || all(count))
    });
}
