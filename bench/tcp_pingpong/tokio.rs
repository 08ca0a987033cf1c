// As in workload.hpp: bench_tcp_pingpong_tokio THREADS BYTES [CONNECTIONS [unix]]. On one thread the runtime is that thread's own.
use std::os::fd::FromRawFd;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Builder;

async fn echo<const BYTES: usize>(mut peer: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
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

async fn serve_unix<const BYTES: usize>() -> std::io::Result<()> {
    let at = UnixListener::from_std(unsafe { std::os::unix::net::UnixListener::from_raw_fd(3) })?;
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
        if std::env::args().nth(4).is_some() {
            tokio::spawn(serve_unix::<4096>()).await?
        } else if number(2) == Some(64) {
            tokio::spawn(serve::<64>()).await?
        } else {
            tokio::spawn(serve::<4096>()).await?
        }
    })
}
