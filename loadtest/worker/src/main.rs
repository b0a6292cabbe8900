// SPDX-License-Identifier: Apache-2.0
//! `weir-worker`: parse, build, serve, drain.

mod args;
#[cfg(feature = "rules")]
mod real;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;
use weir_executor::{Emulator, Work};
use weir_telemetry::Telemetry;
use weir_worker::engine::Engine;
use weir_worker::host::Host;
use weir_worker::metrics::Families;
use weir_worker::priorities::Priorities;
use weir_worker::server::app::App;
use weir_worker::server::faults::Faults;
use weir_worker::server::{self, emulated};

use args::Args;

/// Blocking threads beside those of joblets: for compiling requests, and for files.
const SPARE_THREADS: usize = server::COMPILING + 8;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let telemetry = Telemetry::start("weir-worker", false)?;
    // One thread for requests, and a blocking one for each joblet that runs.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(args.joblets_at_once() + SPARE_THREADS)
        .build()?;
    let served = runtime.block_on(serve(args, telemetry));
    // What still runs has been told to stop and had its time.
    runtime.shutdown_background();
    served
}

async fn serve(args: Args, telemetry: Telemetry) -> anyhow::Result<()> {
    match args.store.clone() {
        #[cfg(feature = "rules")]
        Some(url) => real::serve(args, &url, telemetry).await,
        #[cfg(not(feature = "rules"))]
        Some(_) => anyhow::bail!(
            "--store: this weir-worker was built without its feature `rules`: it can only --emulate"
        ),
        None => serve_emulated(args, telemetry).await,
    }
}

async fn serve_emulated(args: Args, telemetry: Telemetry) -> anyhow::Result<()> {
    let engine = Emulator::new(&args.settings(), new_epoch());
    let faults = match &args.faults {
        Some(folder) => {
            let faults = Faults::open(folder, args.listen);
            Some(Arc::new(
                faults.with_context(|| format!("--faults {}", folder.display()))?,
            ))
        }
        None => None,
    };
    let model = args.model(faults);
    let jobs = |app| emulated::router(app, model);
    listen(args, engine, Families::default(), telemetry, jobs).await
}

async fn listen<W: Work>(
    args: Args,
    engine: impl Engine<Work = W>,
    metrics: Families,
    telemetry: Telemetry,
    jobs: impl FnOnce(Arc<App<W>>) -> Router,
) -> anyhow::Result<()> {
    let priorities = Priorities::new(args.priority.clone(), &args.default_priority)
        .map_err(|reason| anyhow::anyhow!("--default-priority: {reason}"))?;
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
    let settings = args.settings();
    let work = if args.emulate { "EMULATED" } else { "rules" };
    info!(%addr, work, cores = settings.cores, order = ?settings.order, "listening");

    let host = Host::start(engine, metrics.clone());
    let mut app = App::new(host, metrics, priorities, addr)?;
    if args.orca_utilisation {
        app = app.telling_utilisation(settings.cores);
    }
    let app = Arc::new(app);
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let jobs = jobs(Arc::clone(&app));
    let gone = CancellationToken::new();
    let exported = Arc::clone(&app);
    let export = telemetry.export(async move || exported.metrics_page().await, gone.clone());
    let serve = async {
        let served = server::run(listener, app, jobs, args.leaving(), shutdown).await;
        gone.cancel();
        served
    };
    tokio::join!(serve, export).0
}

/// Whole or not at all: a reader that waits for the file never sees half of it.
fn write_ports(file: &Path, addr: SocketAddr) -> anyhow::Result<()> {
    let text = serde_json::json!({ "listen": addr.to_string() }).to_string();
    weir_whole_file::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// A number that no earlier start of this host has used; never 0, which means unknown.
fn new_epoch() -> u64 {
    // RandomState is seeded by the system, which saves a generator for one number.
    RandomState::new().build_hasher().finish().max(1)
}
