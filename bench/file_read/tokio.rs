// As in client.hpp: bench_file_read_tokio THREADS BYTES AT-ONCE PATH KIND FILE-BYTES. Tokio has no reads at an offset: each is a
// call of its blocking pool, as those of tokio::fs are.
use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

struct Work {
    from: File,
    bytes: usize,
    blocks: u64,
    in_order: bool,
    count: u64,
    next: AtomicU64,
    right: AtomicU64,
}

// Aligned for direct reads.
struct Buffer {
    whole: Vec<u8>,
    skip: usize,
}

async fn read_some(all: Arc<Work>) {
    let whole = vec![0u8; all.bytes + 4096];
    let skip = (4096 - whole.as_ptr() as usize % 4096) % 4096;
    let mut buffer = Buffer { whole, skip };
    loop {
        let one = all.next.fetch_add(1, Relaxed);
        if one >= all.count {
            return;
        }
        let block = if all.in_order { one } else { one.wrapping_mul(2654435761) } % all.blocks;
        let mine = all.clone();
        let (back, is_right) = tokio::task::spawn_blocking(move || {
            let into = &mut buffer.whole[buffer.skip..buffer.skip + mine.bytes];
            let got = mine.from.read_at(into, block * mine.bytes as u64);
            let found = u64::from_le_bytes(into[..8].try_into().unwrap());
            let is_right = matches!(got, Ok(size) if size == mine.bytes) && found == block * (mine.bytes as u64 / 4096);
            (buffer, is_right)
        })
        .await
        .unwrap();
        buffer = back;
        if is_right {
            all.right.fetch_add(1, Relaxed);
        }
    }
}

async fn serve(words: Vec<String>) -> std::io::Result<()> {
    let number = |which: usize| words[which].parse::<u64>().unwrap();
    let (bytes, at_once, kind) = (number(2) as usize, number(3), &words[5]);
    let at = TcpListener::from_std(unsafe { std::net::TcpListener::from_raw_fd(3) })?;
    let mut client = at.accept().await?.0;
    loop {
        let count = client.read_u64_le().await?;
        let mut how = File::options();
        how.read(true);
        if kind == "direct" {
            how.custom_flags(0o40000); // O_DIRECT
        }
        let all = Arc::new(Work {
            from: how.open(&words[4])?,
            bytes,
            blocks: number(6) / bytes as u64,
            in_order: kind == "stream",
            count,
            next: AtomicU64::new(0),
            right: AtomicU64::new(0),
        });
        let those: Vec<_> = (0..at_once).map(|_| tokio::spawn(read_some(all.clone()))).collect();
        for one in those {
            one.await?;
        }
        client.write_u64_le(all.right.load(Relaxed)).await?;
    }
}

fn main() -> std::io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(serve(std::env::args().collect()))
}
