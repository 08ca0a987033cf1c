// As in client.cpp: bench_resolve_tokio THREADS BYTES AT-ONCE. Tokio looks names up by getaddrinfo, on its blocking pool.
use std::net::{IpAddr, Ipv4Addr};
use tokio::runtime::Builder;

async fn is_found(host: String) -> bool {
    match tokio::net::lookup_host((host, 80)).await {
        Ok(found) => {
            let found: Vec<_> = found.collect();
            found.len() == 2 && found[0].ip() == IpAddr::V4(Ipv4Addr::new(127, 0, 0, 7))
        }
        Err(_) => false,
    }
}

fn main() -> std::io::Result<()> {
    let at_once = std::env::args().nth(3).and_then(|word| word.parse().ok()).unwrap_or(1);
    Builder::new_current_thread().enable_io().build()?.block_on(bench::serve_lookups(at_once, is_found))
}
