// SPDX-License-Identifier: Apache-2.0
//! `weir-worker`: parse, build, serve, drain.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;
use tracing_subscriber::EnvFilter;
use weir_worker::executor::{Emulator, Settings, Timing};
use weir_worker::host::Host;
use weir_worker::metrics::Families;
use weir_worker::request::{Priorities, Priority};
use weir_worker::server::{self, Options};

/// An HTTP host with virtual cores, a priority queue and a cache. Its work is EMULATED: a job holds
/// a core, asleep, for the time its request says; no CPU is burnt and no data is read.
#[derive(Debug, Parser)]
#[command(name = "weir-worker", version)]
struct Args {
    /// Emulate the work (the only kind there is so far, so it must be given).
    #[arg(long)]
    emulate: bool,
    /// Address to serve on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:9001")]
    listen: SocketAddr,
    /// Write {"listen":"ADDRESS"} to this file once the port is bound.
    #[arg(long, value_name = "FILE")]
    ports_file: Option<PathBuf>,
    /// Virtual cores.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    cores: u16,
    /// Cache size in bytes; K, M, G (powers of 1000) and Ki, Mi, Gi (of 1024) are understood.
    #[arg(long, default_value = "1Gi", value_parser = parse_bytes)]
    cache_bytes: u64,
    /// Emulated time to the first byte of a fetch, in microseconds.
    #[arg(long, default_value_t = 5_000)]
    fetch_base_us: u64,
    /// Emulated bandwidth of one fetch in bytes per second; same suffixes as --cache-bytes.
    #[arg(long, default_value = "1G", value_parser = parse_bytes)]
    fetch_bytes_per_second: u64,
    /// A priority name (header x-weir-priority) and its class, 0 (most important) to 31.
    #[arg(long, value_name = "NAME=CLASS", default_values = ["high=0", "low=16"])]
    priority: Vec<Priority>,
    /// Priority of a request that names none of them.
    #[arg(long, value_name = "NAME", default_value = "low")]
    default_priority: String,
    /// Emulated run time of a request without x-emulate-run-us, in microseconds.
    #[arg(long, default_value_t = 1_000)]
    default_run_us: u64,
    /// Jobs that may wait for a core; more are answered 503.
    #[arg(long, default_value_t = 10_000)]
    max_queued: usize,
    /// Cache changes remembered for GET /cache?since=; older questions get everything.
    #[arg(long, default_value_t = 65_536)]
    change_log: usize,
    /// Seconds that jobs may go on after SIGTERM.
    #[arg(long, default_value_t = 30)]
    drain_seconds: u64,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if !args.emulate {
        bail!("only emulated work exists so far: say --emulate");
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    // One thread: the work is asleep, and a demo runs many hosts on few real cores.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serve(args))
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let priorities = Priorities::new(args.priority, &args.default_priority)
        .map_err(|reason| anyhow::anyhow!("--default-priority: {reason}"))?;
    let settings = Settings {
        cores: usize::from(args.cores),
        cache_bytes: args.cache_bytes,
        max_queued: args.max_queued,
        change_log: args.change_log,
    };
    let timing = Timing {
        fetch_base: Duration::from_micros(args.fetch_base_us),
        fetch_bytes_per_second: args.fetch_bytes_per_second,
    };
    // Before the port is announced: whoever reads it may send the signal at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let addr = listener.local_addr()?;
    if let Some(file) = &args.ports_file {
        write_ports(file, addr)?;
    }
    println!("listening on {addr}");
    info!(%addr, cores = args.cores, cache_bytes = args.cache_bytes, "emulated host listening");

    let metrics = Families::default();
    let host = Host::start(
        Emulator::new(&settings, timing, new_epoch()),
        metrics.clone(),
    );
    let options = Options {
        priorities,
        default_run: Duration::from_micros(args.default_run_us),
        drain: Duration::from_secs(args.drain_seconds),
    };
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    server::run(listener, host, metrics, options, shutdown).await
}

/// Whole or not at all: a reader that waits for the file never sees half of it.
fn write_ports(file: &Path, addr: SocketAddr) -> anyhow::Result<()> {
    let text = serde_json::json!({ "listen": addr.to_string() }).to_string();
    let part = file.with_extension("part");
    std::fs::write(&part, text)
        .and_then(|()| std::fs::rename(&part, file))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// A number that no earlier start of this host has used; never 0, which means unknown.
fn new_epoch() -> u64 {
    // RandomState is seeded by the system, which saves a generator for one number.
    RandomState::new().build_hasher().finish().max(1)
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        suffix => return Err(format!("unknown suffix {suffix:?}")),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("{digits:?} is not a whole number"))?;
    number.checked_mul(factor).ok_or("too large".to_owned())
}
