// SPDX-License-Identifier: Apache-2.0
//! Hosts that answer at once: what is left of a request's cost is its way to them.
//!
//! One thread serves them all. Each tells its load and its cache to weir-control, and its load to the
//! inference gateway's picker, in their own words.

mod answer;
mod keys;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;
use weir_stage::ports;

use self::answer::Host;
use crate::bench::load::one_thread;

/// Hosts that answer at once.
#[derive(clap::Args)]
pub struct Hosts {
    /// How many
    #[arg(long)]
    hosts: usize,
    /// Key number n, `key-n`, is in the cache of host n modulo the number of hosts
    #[arg(long)]
    keys: usize,
    /// `{"hosts": ["ADDRESS", ...]}` is written to it, once all listen
    #[arg(long, value_name = "FILE")]
    ports_file: PathBuf,
}

impl Hosts {
    /// Plays them until the process is ended.
    ///
    /// # Errors
    /// There are no ports, or the file cannot be written.
    pub fn play(self) -> Result<()> {
        one_thread()?.block_on(self.serve())
    }

    async fn serve(self) -> Result<()> {
        let mut addresses = Vec::new();
        for number in 0..self.hosts {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let address = listener.local_addr()?;
            let keys = keys::of_host(number, self.hosts, self.keys);
            let host = Arc::new(Host::new(address, keys)?);
            tokio::spawn(accept(listener, host));
            addresses.push(address);
        }
        ports::write(&self.ports_file, &json!({"hosts": addresses}))?;
        std::future::pending().await
    }
}

async fn accept(listener: TcpListener, host: Arc<Host>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let host = Arc::clone(&host);
        let service = service_fn(move |request| {
            let host = Arc::clone(&host);
            async move { host.answer(request).await }
        });
        tokio::spawn(
            http1::Builder::new()
                // A sidecar rests while others are measured. Closed just as a request comes, a connection
                // would send it to another host.
                .header_read_timeout(None)
                .serve_connection(TokioIo::new(stream), service),
        );
    }
}
