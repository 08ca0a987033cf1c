// As in client.hpp: bench_file_write_tokio THREADS BYTES AT-ONCE PATH KIND FILE-BYTES. Tokio has no writes at an offset: each is a
// call of its blocking pool, as those of tokio::fs are.
use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

struct Work {
    to: File,
    bytes: usize,
    blocks: u64,
    in_order: bool,
    syncs: bool,
    count: u64,
    next: AtomicU64,
    right: AtomicU64,
}

async fn write_some(all: Arc<Work>) {
    let mut piece = vec![0u8; all.bytes];
    loop {
        let one = all.next.fetch_add(1, Relaxed);
        if one >= all.count {
            return;
        }
        let block = if all.in_order { one } else { one.wrapping_mul(2654435761) } % all.blocks;
        let mine = all.clone();
        let (back, is_right) = tokio::task::spawn_blocking(move || {
            piece[..8].copy_from_slice(&one.to_le_bytes());
            let put = mine.to.write_at(&piece, block * mine.bytes as u64);
            let is_there = !mine.syncs || mine.to.sync_data().is_ok();
            let is_right = matches!(put, Ok(size) if size == mine.bytes) && is_there;
            (piece, is_right)
        })
        .await
        .unwrap();
        piece = back;
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
        let all = Arc::new(Work {
            to: File::options().write(true).open(&words[4])?,
            bytes,
            blocks: number(6) / bytes as u64,
            in_order: kind == "stream",
            syncs: kind == "sync",
            count,
            next: AtomicU64::new(0),
            right: AtomicU64::new(0),
        });
        let those: Vec<_> = (0..at_once).map(|_| tokio::spawn(write_some(all.clone()))).collect();
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
