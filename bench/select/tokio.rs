//! Its channels have room for one at least; `otherwise` is a last branch that is always ready.
use bench::tokio_on;
use tokio::select;
use tokio::sync::mpsc;

const ROUNDS: usize = 10_000; // as in workload.hpp

async fn round_trips() -> usize {
    let (there, mut there_end) = mpsc::channel(1);
    let (back, mut back_end) = mpsc::channel(1);
    let (_never, mut never_for_echo) = mpsc::channel::<usize>(1);
    let (_too, mut never) = mpsc::channel::<usize>(1);
    let echo = tokio::spawn(async move {
        loop {
            select! {
                number = there_end.recv() => match number {
                    Some(number) => back.send(number + 1).await.unwrap(),
                    None => return,
                },
                _ = never_for_echo.recv() => return,
            }
        }
    });
    let mut number = 0;
    for _ in 0..ROUNDS {
        there.send(number).await.unwrap();
        select! {
            next = back_end.recv() => number = next.unwrap(),
            _ = never.recv() => {}
        }
    }
    drop(there);
    echo.await.unwrap();
    number
}

async fn one_ready() -> usize {
    let (to_a, mut a) = mpsc::channel(1);
    let (to_b, mut b) = mpsc::channel(1);
    let (to_c, mut c) = mpsc::channel(1);
    let (to_d, mut d) = mpsc::channel(1);
    let to = [to_a, to_b, to_c, to_d];
    let mut right = 0;
    for i in 0..ROUNDS {
        to[i % 4].send(i).await.unwrap();
        let index = select! {
            _ = a.recv() => 0,
            _ = b.recv() => 1,
            _ = c.recv() => 2,
            _ = d.recv() => 3,
        };
        right += usize::from(index == i % 4);
    }
    right
}

async fn none_ready() -> usize {
    let (_to_a, mut a) = mpsc::channel::<usize>(1);
    let (_to_b, mut b) = mpsc::channel::<usize>(1);
    let mut right = 0;
    for _ in 0..ROUNDS {
        select! {
            biased;
            _ = a.recv() => {}
            _ = b.recv() => {}
            _ = std::future::ready(()) => right += 1,
        }
    }
    right
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(1);
        match state.size() {
            2 => state.measure(ROUNDS, ROUNDS, || runtime.block_on(round_trips())),
            4 => state.measure(ROUNDS, ROUNDS, || runtime.block_on(one_ready())),
            _ => state.measure(ROUNDS, ROUNDS, || runtime.block_on(none_ready())),
        }
    });
}
