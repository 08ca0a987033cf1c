use bench::tokio_on;
use std::future::Future;
use std::pin::Pin;

// As in workload.hpp, a task for each safe place.
const QUEENS: usize = 12;
const RESULT: usize = 14_200;

type Board = [i8; QUEENS];

fn is_safe(placed: &Board, row: usize, column: usize) -> bool {
    placed[..row].iter().enumerate().all(|(above, &other)| {
        let (other, distance) = (other as usize, row - above);
        other != column && other + distance != column && other != column + distance
    })
}

fn place(placed: Board, row: usize) -> Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(async move {
        if row == QUEENS {
            return 1;
        }
        let mut below = Vec::with_capacity(QUEENS);
        for column in (0..QUEENS).filter(|&column| is_safe(&placed, row, column)) {
            let mut next = placed;
            next[row] = column as i8;
            below.push(tokio::spawn(place(next, row + 1)));
        }
        let mut ways = 0;
        for each in below {
            ways += each.await.unwrap();
        }
        ways
    })
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size());
        state.measure(1, RESULT, || runtime.block_on(async { tokio::spawn(place([0; QUEENS], 0)).await.unwrap() }));
    });
}
