// As in workload.hpp: bench_http_hello_tokio_hyper THREADS BYTES. On one thread the runtime is that thread's own.
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::os::fd::FromRawFd;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut answer = Response::new(Full::new(Bytes::from_static(b"Hello, world\n")));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(answer)
}

async fn serve() -> std::io::Result<()> {
    let at = TcpListener::from_std(unsafe { std::net::TcpListener::from_raw_fd(3) })?;
    loop {
        let peer = TokioIo::new(at.accept().await?.0);
        tokio::spawn(async move {
            let service = hyper::service::service_fn(hello);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(peer, service).await;
        });
    }
}

fn main() -> std::io::Result<()> {
    let threads = std::env::args().nth(1).and_then(|word| word.parse::<usize>().ok()).unwrap_or(1);
    let runtime = if threads == 1 {
        Builder::new_current_thread().enable_io().build()?
    } else {
        Builder::new_multi_thread().worker_threads(threads).enable_io().build()?
    };
    runtime.block_on(async { tokio::spawn(serve()).await? })
}
