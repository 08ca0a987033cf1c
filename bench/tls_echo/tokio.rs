// As in workload.hpp, by tokio-rustls, with ring. The runtime is the one thread's own.
use std::io::{Error, Result};
use std::os::fd::FromRawFd;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

async fn echo(by: TlsAcceptor, raw: TcpStream) -> Result<()> {
    let mut peer = by.accept(raw).await?;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match peer.read(&mut buffer).await? {
            0 => return Ok(()),
            size => peer.write_all(&buffer[..size]).await?,
        }
        peer.flush().await?;
    }
}

async fn serve() -> Result<()> {
    let word = |which| std::env::args().nth(which).ok_or(Error::other("too few words"));
    let chain: Vec<_> = CertificateDer::pem_file_iter(word(4)?)
        .map_err(Error::other)?
        .collect::<std::result::Result<_, _>>()
        .map_err(Error::other)?;
    let key = PrivateKeyDer::from_pem_file(word(5)?).map_err(Error::other)?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(Error::other)?;
    let by = TlsAcceptor::from(Arc::new(config));
    let at = TcpListener::from_std(unsafe { std::net::TcpListener::from_raw_fd(3) })?;
    loop {
        let (raw, _) = at.accept().await?;
        tokio::spawn(echo(by.clone(), raw));
    }
}

fn main() -> Result<()> {
    Builder::new_current_thread().enable_io().build()?.block_on(serve())
}
