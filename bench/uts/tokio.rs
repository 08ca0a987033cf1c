use bench::{tokio_on, Boxed};

// As in workload.hpp, a task for each child.
struct Tree {
    seed: u32,
    nodes: usize,
    chance: f64,     // that a node has children, below the root; 0: the tree is geometric
    children: usize, // if so
}

#[rustfmt::skip]
static TREES: [Tree; 3] = [
    Tree { seed: 19, nodes: 4_130_071, chance: 0.0, children: 0 },
    Tree { seed: 42, nodes: 4_112_897, chance: 0.124875, children: 8 },
    Tree { seed: 7, nodes: 111_345_631, chance: 0.200014, children: 5 },
];
const WIDTH: f64 = 4.0;
const DEPTH: usize = 10;
const BINOMIAL_WIDTH: usize = 2000;

type Digest = [u32; 5];

/// SHA-1 of what fits into one block of 16 words with its end mark and length.
fn sha1(block: [u32; 16]) -> Digest {
    let mut w = [0; 80];
    w[..16].copy_from_slice(&block);
    for i in 16..80 {
        w[i] = (w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16]).rotate_left(1);
    }
    const START: Digest = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
    let [mut a, mut b, mut c, mut d, mut e] = START;
    let mut steps = |words: &[u32], constant: u32, mix: fn(u32, u32, u32) -> u32| {
        for word in words {
            let next = [a.rotate_left(5), mix(b, c, d), e, constant, *word];
            let next = next.into_iter().fold(0, u32::wrapping_add);
            (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
        }
    };
    steps(&w[..20], 0x5a827999, |b, c, d| (b & c) | (!b & d));
    steps(&w[20..40], 0x6ed9eba1, |b, c, d| b ^ c ^ d);
    steps(&w[40..60], 0x8f1bbcdc, |b, c, d| (b & c) | (b & d) | (c & d));
    steps(&w[60..], 0xca62c1d6, |b, c, d| b ^ c ^ d);
    let end = [a, b, c, d, e];
    std::array::from_fn(|i| START[i].wrapping_add(end[i]))
}

impl Tree {
    fn root(&self) -> Digest {
        sha1([0, 0, 0, 0, self.seed, 0x80000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20 * 8])
    }

    fn children(&self, state: &Digest, depth: usize) -> usize {
        let chance = f64::from(state[4] & 0x7fffffff) / 2147483648.0;
        if self.chance != 0.0 {
            return match depth {
                0 => BINOMIAL_WIDTH,
                _ if chance < self.chance => self.children,
                _ => 0,
            };
        }
        if depth == DEPTH {
            return 0;
        }
        let count = (1.0 - chance).ln() / (1.0 - 1.0 / (1.0 + WIDTH)).ln();
        (count as usize).min(100)
    }

    fn count(&'static self, state: Digest, depth: usize) -> Boxed<usize> {
        Box::pin(async move {
            let child = |which| {
                let [a, b, c, d, e] = state;
                let state = sha1([a, b, c, d, e, which as u32, 0x80000000, 0, 0, 0, 0, 0, 0, 0, 0, 24 * 8]);
                tokio::spawn(self.count(state, depth + 1))
            };
            let below: Vec<_> = (0..self.children(&state, depth)).map(child).collect();
            let mut nodes = 1;
            for each in below {
                nodes += each.await.unwrap();
            }
            nodes
        })
    }
}

fn main() {
    bench::run(|state| {
        let runtime = tokio_on(state.size() % 100);
        let tree = &TREES[state.size() / 100];
        state.measure(tree.nodes, tree.nodes, || {
            runtime.block_on(async { tokio::spawn(tree.count(tree.root(), 0)).await.unwrap() })
        });
    });
}
