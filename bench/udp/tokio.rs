// As in workload.hpp. The runtime is the one thread's own.
use std::os::fd::FromRawFd;
use tokio::net::UdpSocket;
use tokio::runtime::Builder;

async fn echo() -> std::io::Result<()> {
    let socket = UdpSocket::from_std(unsafe { std::net::UdpSocket::from_raw_fd(3) })?;
    let mut buffer = [0; 2048];
    loop {
        let (size, from) = socket.recv_from(&mut buffer).await?;
        socket.send_to(&buffer[..size], from).await?;
    }
}

fn main() -> std::io::Result<()> {
    Builder::new_current_thread().enable_io().build()?.block_on(echo())
}
