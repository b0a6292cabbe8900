// SPDX-License-Identifier: Apache-2.0
//! `weir-llm-host`: parse, bind, serve.

mod args;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;
use weir_llm_host::Engine;
use weir_llm_host::host::Host;
use weir_llm_host::metrics::Metrics;
use weir_llm_host::request_log::RequestLog;
use weir_llm_host::server::{self, App};

use args::Args;

/// One thread for all hosts: they only sleep.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let log = match &args.request_log {
        Some(file) => {
            let log = RequestLog::create(file);
            Some(Arc::new(log.with_context(|| {
                format!("--request-log {}", file.display())
            })?))
        }
        None => None,
    };
    let mut listeners = Vec::new();
    for _ in 0..args.hosts {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.context("cannot listen on 127.0.0.1")?;
        listeners.push((listener.local_addr()?, listener));
    }
    let addresses: Vec<_> = listeners.iter().map(|(address, _)| *address).collect();
    let origin = Instant::now();
    let mut hosts = JoinSet::new();
    for (address, listener) in listeners {
        let settings = args.settings();
        let app = App {
            address,
            metrics: Metrics::new(&settings, &args.model),
            model: args.model.clone(),
            block_tokens: settings.block_tokens,
            key_separator: args.key_separator,
            host: Host::start(Engine::new(settings, new_epoch()), origin),
            log: log.clone(),
        };
        hosts.spawn(server::serve(listener, app, args.max_body_bytes));
    }
    if let Some(file) = &args.ports_file {
        write_ports(file, &addresses)?;
    }
    println!("EMULATED hosts listen on {addresses:?}");
    while let Some(ended) = hosts.join_next().await {
        ended?.context("a host has ended")?;
    }
    Ok(())
}

/// Whole or not at all: a reader that waits for the file never sees half of it.
fn write_ports(file: &Path, addresses: &[SocketAddr]) -> anyhow::Result<()> {
    let text = serde_json::json!({ "hosts": addresses }).to_string();
    weir_whole_file::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// A number that no earlier start of this host has used; never 0, which means unknown.
fn new_epoch() -> u64 {
    // RandomState is seeded by the system, which saves a generator for one number.
    RandomState::new().build_hasher().finish().max(1)
}
