// As in workload.hpp: bench_tcp_pingpong_tokio THREADS BYTES. On one thread the runtime is that thread's own.
use std::os::fd::FromRawFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

async fn echo<const BYTES: usize>(mut peer: TcpStream) -> std::io::Result<()> {
    let mut buffer = [0; BYTES];
    loop {
        match peer.read(&mut buffer).await? {
            0 => return Ok(()),
            size => peer.write_all(&buffer[..size]).await?,
        }
    }
}

async fn serve<const BYTES: usize>() -> std::io::Result<()> {
    let at = TcpListener::from_std(unsafe { std::net::TcpListener::from_raw_fd(3) })?;
    loop {
        tokio::spawn(echo::<BYTES>(at.accept().await?.0));
    }
}

fn main() -> std::io::Result<()> {
    let number = |which| std::env::args().nth(which).and_then(|word| word.parse::<usize>().ok());
    let threads = number(1).unwrap_or(1);
    let runtime = if threads == 1 {
        Builder::new_current_thread().enable_io().build()?
    } else {
        Builder::new_multi_thread().worker_threads(threads).enable_io().build()?
    };
    runtime.block_on(async {
        if number(2) == Some(64) {
            tokio::spawn(serve::<64>()).await?
        } else {
            tokio::spawn(serve::<4096>()).await?
        }
    })
}
