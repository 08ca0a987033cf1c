// As in client.cpp: bench_resolve_tokio_hickory THREADS BYTES AT-ONCE. hickory asks name servers itself, in tokio; as the others, it
// keeps no answers, and asks for both families at once.
use hickory_resolver::config::LookupIpStrategy;
use hickory_resolver::TokioResolver;
use std::net::{IpAddr, Ipv4Addr};
use tokio::runtime::Builder;

async fn is_found(by: TokioResolver, host: String) -> bool {
    match by.lookup_ip(host).await {
        Ok(found) => {
            let found: Vec<_> = found.iter().collect();
            found.len() == 2 && found[0] == IpAddr::V4(Ipv4Addr::new(127, 0, 0, 7))
        }
        Err(_) => false,
    }
}

async fn serve(at_once: u64) -> std::io::Result<()> {
    let mut builder = TokioResolver::builder_tokio().map_err(std::io::Error::other)?;
    builder.options_mut().cache_size = 0;
    builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    let by = builder.build();
    bench::serve_lookups(at_once, move |host| is_found(by.clone(), host)).await
}

fn main() -> std::io::Result<()> {
    let at_once = std::env::args().nth(3).and_then(|word| word.parse().ok()).unwrap_or(1);
    Builder::new_current_thread().enable_io().enable_time().build()?.block_on(serve(at_once))
}
