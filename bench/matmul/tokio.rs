use bench::{both, tokio_on, Boxed};

// As in workload.hpp: a task for one half; the other is awaited where its parent is.
const SIDE: usize = 512;
const GRAIN: usize = 64;

// A task outlives every borrow, so these are addresses; the caller has the matrices until all tasks have ended.
#[derive(Clone, Copy)]
struct Product {
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    rows: usize,
    inner: usize,
    columns: usize,
}

// Halves that are added to at once have rows or columns of their own.
unsafe impl Send for Product {}

impl Product {
    fn whole(a: &[f32], b: &[f32], c: &mut [f32]) -> Self {
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        let (rows, inner, columns) = (SIDE, SIDE, SIDE);
        Product { a, b, c, rows, inner, columns }
    }

    #[inline(never)]
    fn add(self) {
        for i in 0..self.rows {
            let c = unsafe { std::slice::from_raw_parts_mut(self.c.add(i * SIDE), self.columns) };
            for k in 0..self.inner {
                let factor = unsafe { *self.a.add(i * SIDE + k) };
                let b = unsafe { std::slice::from_raw_parts(self.b.add(k * SIDE), self.columns) };
                for (sum, each) in c.iter_mut().zip(b) {
                    *sum += factor * each;
                }
            }
        }
    }
}

fn multiply(all: Product) -> Boxed<()> {
    Box::pin(async move {
        let Product { rows, inner, columns, .. } = all;
        if rows.max(inner).max(columns) <= GRAIN {
            return all.add();
        }
        let (mut one, mut other) = (all, all);
        if rows >= inner && rows >= columns {
            (one.rows, other.rows) = (rows / 2, rows - rows / 2);
            (other.a, other.c) = unsafe { (all.a.add(one.rows * SIDE), all.c.add(one.rows * SIDE)) };
        } else if columns >= inner {
            (one.columns, other.columns) = (columns / 2, columns - columns / 2);
            (other.b, other.c) = unsafe { (all.b.add(one.columns), all.c.add(one.columns)) };
        } else {
            (one.inner, other.inner) = (inner / 2, inner - inner / 2);
            (other.a, other.b) = unsafe { (all.a.add(one.inner), all.b.add(one.inner * SIDE)) };
            multiply(one).await; // both add to the same numbers
            return multiply(other).await;
        }
        both(multiply(one), multiply(other)).await;
    })
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size());
        let numbers = |step, below| -> Vec<f32> { (0..SIDE * SIDE).map(|i| (i * step % below) as f32).collect() };
        let (a, b, mut expected) = (numbers(7, 13), numbers(5, 11), vec![0.0; SIDE * SIDE]);
        Product::whole(&a, &b, &mut expected).add();
        let zeros = || vec![0.0; SIDE * SIDE];
        state.measure_prepared(1, 1, zeros, |c| {
            let all = Product::whole(&a, &b, c);
            runtime.block_on(async { tokio::spawn(multiply(all)).await.unwrap() });
            usize::from(*c == expected)
        });
    });
}
