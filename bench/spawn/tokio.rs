// As in client.cpp: bench_spawn_tokio THREADS BYTES AT-ONCE.
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::runtime::Builder;

#[derive(Default)]
struct Work {
    next: AtomicU64,
    right: AtomicU64,
}

async fn run_some(all: Arc<Work>, count: u64) {
    while all.next.fetch_add(1, Relaxed) < count {
        if let Ok(how) = Command::new("/bin/true").status().await {
            if how.success() {
                all.right.fetch_add(1, Relaxed);
            }
        }
    }
}

async fn serve(at_once: u64) -> std::io::Result<()> {
    let at = TcpListener::from_std(unsafe { std::net::TcpListener::from_raw_fd(3) })?;
    let mut client = at.accept().await?.0;
    loop {
        let count = client.read_u64_le().await?;
        let all = Arc::new(Work::default());
        let those: Vec<_> = (0..at_once).map(|_| tokio::spawn(run_some(all.clone(), count))).collect();
        for one in those {
            one.await?;
        }
        client.write_u64_le(all.right.load(Relaxed)).await?;
    }
}

fn main() -> std::io::Result<()> {
    let number = |which| std::env::args().nth(which).and_then(|word| word.parse::<u64>().ok());
    let runtime = Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(serve(number(3).unwrap_or(1)))
}
