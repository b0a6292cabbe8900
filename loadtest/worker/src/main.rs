// SPDX-License-Identifier: Apache-2.0
//! `weir-worker`: parse, build, serve, drain.

mod args;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use clap::Parser;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;
use weir_executor::{Emulator, Work};
use weir_feeds::ItemStore;
use weir_telemetry::Telemetry;
use weir_worker::engine::Engine;
use weir_worker::engine::cores::Cores;
use weir_worker::host::Host;
use weir_worker::joblet_log::JobletLog;
use weir_worker::metrics::Families;
use weir_worker::objects::Objects;
use weir_worker::priorities::Priorities;
use weir_worker::server::app::App;
use weir_worker::server::faults::Faults;
use weir_worker::server::{self, emulated, rules};
use weir_worker::task::Tools;

use args::Args;

/// Blocking threads beside those of joblets: for compiling requests, and for files.
const SPARE_THREADS: usize = rules::COMPILING + 8;

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
        Some(url) => serve_rules(args, &url, telemetry).await,
        None => serve_emulated(args, telemetry).await,
    }
}

async fn serve_rules(args: Args, url: &str, telemetry: Telemetry) -> anyhow::Result<()> {
    let store = ItemStore::open(url).context("--store")?;
    let log = match &args.joblet_log {
        Some(file) => {
            let log = JobletLog::create(file);
            Some(log.with_context(|| format!("--joblet-log {}", file.display()))?)
        }
        None => None,
    };
    let tools = Tools {
        store: store.clone(),
        feed_limits: args.feed_limits(),
        limits: args.limits(),
        io: Handle::current(),
    };
    let objects = Objects::new(store, args.recheck());
    let options = rules::Options {
        limits: args.limits(),
        max_body_bytes: args.max_body_bytes(),
        optimise: !args.no_optimise,
        wide_fetches: !tools.store.is_remote(),
    };
    let metrics = Families::default();
    let engine = Cores::new(&args.settings(), new_epoch(), tools, metrics.clone(), log)
        .unwanted_for(args.unwanted());
    let jobs = |app| rules::router(app, objects, options);
    listen(args, engine, metrics, telemetry, jobs).await
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
