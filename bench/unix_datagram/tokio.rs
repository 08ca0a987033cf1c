// As in workload.hpp. The runtime is the one thread's own.
use std::os::fd::FromRawFd;
use tokio::net::UnixDatagram;
use tokio::runtime::Builder;

async fn echo() -> std::io::Result<()> {
    let socket = UnixDatagram::from_std(unsafe { std::os::unix::net::UnixDatagram::from_raw_fd(3) })?;
    let mut buffer = [0; 2048];
    loop {
        let size = socket.recv(&mut buffer).await?;
        socket.send(&buffer[..size]).await?;
    }
}

fn main() -> std::io::Result<()> {
    Builder::new_current_thread().enable_io().build()?.block_on(echo())
}
