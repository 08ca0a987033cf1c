use bench::tokio_on;
use std::time::Instant;
use tokio::sync::mpsc;

fn main() {
    bench::run(|state| {
        let count = state.size();
        let runtime = tokio_on(1);
        let mut begin = Instant::now();
        let (mut ins, mut in_ends, mut outs, mut out_ends) = (vec![], vec![], vec![], vec![]);
        for _ in 0..count {
            let (to, from) = mpsc::channel::<usize>(1);
            ins.push(to);
            in_ends.push(from);
            let (to, from) = mpsc::channel::<usize>(1);
            outs.push(to);
            out_ends.push(from);
        }
        state.report("create ns", begin.elapsed().as_nanos() as f64 / count as f64);
        begin = Instant::now();
        let tasks: Vec<_> = in_ends
            .into_iter()
            .zip(outs)
            .map(|(mut from, to)| {
                runtime.spawn(async move {
                    while let Some(number) = from.recv().await {
                        to.send(number).await.unwrap();
                    }
                })
            })
            .collect();
        state.report("start ns", begin.elapsed().as_nanos() as f64 / count as f64);
        let mut sweep = || {
            runtime.block_on(async {
                let mut sum = 0;
                for (i, (to, from)) in ins.iter().zip(&mut out_ends).enumerate() {
                    to.send(i).await.unwrap();
                    sum += from.recv().await.unwrap();
                }
                sum
            })
        };
        let once = count * (count - 1) / 2;
        let switches = match (state.switches(), state.full()) {
            (0, true) => 1000, // as in workload.hpp
            (given, _) => given,
        };
        if switches == 0 {
            state.measure(count, once, sweep);
        } else {
            state.report("switches of each", switches as f64);
            state.measure_once(count * switches, once * switches, || (0..switches).map(|_| sweep()).sum());
        }
        begin = Instant::now();
        drop(std::mem::take(&mut ins));
        runtime.block_on(async {
            for one in tasks {
                one.await.unwrap();
            }
        });
        state.report("close ns", begin.elapsed().as_nanos() as f64 / count as f64);
    });
}
