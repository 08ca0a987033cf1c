// As in client.cpp: bench_resolve_tokio THREADS BYTES AT-ONCE. Tokio looks names up by getaddrinfo, on its blocking pool.
use std::net::SocketAddr;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

#[derive(Default)]
struct Work {
    next: AtomicU64,
    right: AtomicU64,
}

async fn look_up(all: Arc<Work>, count: u64) {
    let expected: SocketAddr = "127.0.0.7:80".parse().unwrap();
    loop {
        let one = all.next.fetch_add(1, Relaxed);
        if one >= count {
            return;
        }
        let host = format!("host-{}.bench.test:80", one % 1000);
        if let Ok(found) = tokio::net::lookup_host(host).await {
            let found: Vec<_> = found.collect();
            if found.len() == 2 && found[0] == expected {
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
        let those: Vec<_> = (0..at_once).map(|_| tokio::spawn(look_up(all.clone(), count))).collect();
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
