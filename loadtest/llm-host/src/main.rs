// SPDX-License-Identifier: Apache-2.0
//! `weir-llm-host`: parse, bind, serve.

mod args;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;
use weir_llm_host::Engine;
use weir_llm_host::host::Host;
use weir_llm_host::kv_events::{Form, Publisher, tokenizer_json};
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
    if let Some(file) = &args.kv_tokenizer {
        let text = tokenizer_json().to_string();
        let written = weir_whole_file::write(file, text);
        written.with_context(|| format!("cannot write {}", file.display()))?;
    }
    let (listeners, ports) = listen(&args).await?;
    let addresses = ports.hosts.clone();
    let origin = Instant::now();
    let mut hosts = JoinSet::new();
    let form = match args.kv_arrays {
        true => Form::Array,
        false => Form::Map,
    };
    for (address, Listeners { http, kv_events }) in addresses.iter().copied().zip(listeners) {
        let settings = args.settings();
        let publisher = kv_events.map(|(publisher, replayer)| {
            let block_tokens = settings.block_tokens;
            Publisher::start(publisher, replayer, block_tokens, args.kv_keep, form)
        });
        let app = App {
            address,
            metrics: Metrics::new(&settings, &args.model),
            model: args.model.clone(),
            block_tokens: settings.block_tokens,
            key_separator: args.key_separator,
            prefill_header: args.prefill_header.clone(),
            host: Host::start(Engine::new(settings, new_epoch()), origin, publisher),
            log: log.clone(),
        };
        hosts.spawn(server::serve(http, app, args.max_body_bytes));
    }
    if let Some(file) = &args.ports_file {
        write_ports(file, &ports)?;
    }
    println!("EMULATED hosts listen on {addresses:?}");
    while let Some(ended) = hosts.join_next().await {
        ended?.context("a host has ended")?;
    }
    Ok(())
}

/// Of one host.
struct Listeners {
    http: TcpListener,
    /// Where it publishes, and where it is asked again.
    kv_events: Option<(TcpListener, TcpListener)>,
}

/// Where hosts listen, by host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Ports {
    hosts: Vec<SocketAddr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kv_events: Vec<SocketAddr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kv_replays: Vec<SocketAddr>,
}

/// On free ports, or on those of an earlier start.
async fn listen(args: &Args) -> anyhow::Result<(Vec<Listeners>, Ports)> {
    let earlier: Ports = match &args.ports_of {
        Some(file) => {
            let text = std::fs::read(file);
            let text = text.with_context(|| format!("--ports-of {}", file.display()))?;
            serde_json::from_slice(&text)
                .with_context(|| format!("--ports-of {}", file.display()))?
        }
        None => Ports::default(),
    };
    let own: Vec<IpAddr> = (0..u32::from(args.hosts))
        .map(|host| Ipv4Addr::LOCALHOST.to_bits() + u32::from(args.kv_events) * host)
        .map(|bits| Ipv4Addr::from_bits(bits).into())
        .collect();
    let http = bind_all(&own, &earlier.hosts, |_| 0).await?;
    let mut ports = Ports {
        hosts: addresses(&http)?,
        ..Ports::default()
    };
    let kv_events: Vec<_> = match args.kv_events {
        true => {
            let publishers = bind_alike(&own, &earlier.kv_events).await?;
            let replayers = bind_alike(&own, &earlier.kv_replays).await?;
            ports.kv_events = addresses(&publishers)?;
            ports.kv_replays = addresses(&replayers)?;
            publishers.into_iter().zip(replayers).map(Some).collect()
        }
        false => http.iter().map(|_| None).collect(),
    };
    let both = http.into_iter().zip(kv_events);
    let listeners = both.map(|(http, kv_events)| Listeners { http, kv_events });
    Ok((listeners.collect(), ports))
}

/// Where all hosts were before, else on one port that is free at all of their addresses.
async fn bind_alike(own: &[IpAddr], earlier: &[SocketAddr]) -> anyhow::Result<Vec<TcpListener>> {
    // The first one's may be taken at the address of another.
    let mut tries = 20;
    loop {
        match bind_all(own, earlier, |first| first).await {
            Err(_) if tries > 1 => tries -= 1,
            done => return done,
        }
    }
}

/// Where hosts were before, else at the port that is made of the first one's, which is any.
async fn bind_all(
    own: &[IpAddr],
    earlier: &[SocketAddr],
    port: impl Fn(u16) -> u16,
) -> anyhow::Result<Vec<TcpListener>> {
    let (mut bound, mut first) = (Vec::new(), 0);
    for (host, ip) in own.iter().enumerate() {
        let free = SocketAddr::new(*ip, port(first));
        let listener = bind(earlier.get(host).copied().unwrap_or(free)).await?;
        if host == 0 {
            first = listener.local_addr()?.port();
        }
        bound.push(listener);
    }
    Ok(bound)
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address}"))
}

fn addresses(listeners: &[TcpListener]) -> std::io::Result<Vec<SocketAddr>> {
    listeners.iter().map(TcpListener::local_addr).collect()
}

/// Whole or not at all: a reader that waits for the file never sees half of it.
fn write_ports(file: &Path, ports: &Ports) -> anyhow::Result<()> {
    let text = serde_json::to_string(ports)?;
    weir_whole_file::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// A number that no earlier start of this host has used; never 0, which means unknown.
fn new_epoch() -> u64 {
    // RandomState is seeded by the system, which saves a generator for one number.
    RandomState::new().build_hasher().finish().max(1)
}
