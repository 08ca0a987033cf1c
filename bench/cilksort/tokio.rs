use bench::{both, tokio_on, Boxed};

// As in workload.hpp: a task for one half, of what is sorted and of what is merged; the other is awaited where its parent
// is. Below the grain it is the standard library's sort, which takes 7 ns a number where that of C++ takes 33.
const NUMBERS: usize = 1 << 22;
const GRAIN: usize = 2048;

// A task outlives every borrow, so this is an address; the caller has the numbers until all tasks have ended.
#[derive(Clone, Copy)]
struct Part {
    first: *mut u32,
    count: usize,
}

// No two tasks that run at once write to the same number, or read one that the other writes to.
unsafe impl Send for Part {}

impl Part {
    fn of(all: &mut [u32]) -> Self {
        Part { first: all.as_mut_ptr(), count: all.len() }
    }
    fn split(self, count: usize) -> (Self, Self) {
        let second = Part { first: unsafe { self.first.add(count) }, count: self.count - count };
        (Part { count, ..self }, second)
    }
    fn numbers<'a>(self) -> &'a mut [u32] {
        unsafe { std::slice::from_raw_parts_mut(self.first, self.count) }
    }
}

fn merge_small(left: &[u32], right: &[u32], into: &mut [u32]) {
    let (mut i, mut j) = (0, 0);
    while i != left.len() && j != right.len() {
        let takes_right = right[j] < left[i];
        into[i + j] = if takes_right { right[j] } else { left[i] };
        j += usize::from(takes_right);
        i += usize::from(!takes_right);
    }
    let rest = if i == left.len() { &right[j..] } else { &left[i..] };
    into[i + j..].copy_from_slice(rest);
}

fn merge(left: Part, right: Part, into: Part) -> Boxed<()> {
    Box::pin(async move {
        if into.count <= GRAIN {
            return merge_small(left.numbers(), right.numbers(), into.numbers());
        }
        let (mut a, mut b) = (left.count / 2, right.count / 2);
        if left.count >= right.count {
            let middle = left.numbers()[a];
            b = right.numbers().partition_point(|&each| each < middle);
        } else {
            let middle = right.numbers()[b];
            a = left.numbers().partition_point(|&each| each <= middle);
        }
        let (left, right, into) = (left.split(a), right.split(b), into.split(a + b));
        both(merge(left.0, right.0, into.0), merge(left.1, right.1, into.1)).await;
    })
}

// Into `room` if `moves`, else in place.
fn sort(values: Part, room: Part, moves: bool) -> Boxed<()> {
    Box::pin(async move {
        if values.count <= GRAIN {
            values.numbers().sort_unstable();
            if moves {
                room.numbers().copy_from_slice(values.numbers());
            }
            return;
        }
        let half = values.count / 2;
        let (one, other) = (values.split(half), room.split(half));
        both(sort(one.0, other.0, !moves), sort(one.1, other.1, !moves)).await;
        let (from, into) = if moves { (one, room) } else { (other, values) };
        merge(from.0, from.1, into).await;
    })
}

fn unsorted() -> Vec<u32> {
    let mut state = 88172645463325252_u64;
    let draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    std::iter::repeat_with(draw).take(NUMBERS).collect()
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size());
        let prepare = || (unsorted(), vec![0; NUMBERS]);
        state.measure_prepared(NUMBERS, 1, prepare, |(values, room)| {
            let all = sort(Part::of(values), Part::of(room), false);
            runtime.block_on(async { tokio::spawn(all).await.unwrap() });
            usize::from(values.windows(2).all(|two| two[0] <= two[1]))
        });
    });
}
