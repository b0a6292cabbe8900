// SPDX-License-Identifier: Apache-2.0
//! Sets core frequencies by what the service runs, and puts them back.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::task::Poll;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use weir_governor::admin::{self, App};
use weir_governor::flags::{Command, Flags};
use weir_governor::jobs::{forget, keeper};
use weir_governor::root::Root;
use weir_governor::run::{Governor, Running};
use weir_governor::sense::{measure, mesh};
use weir_governor::watchdog::Watchdog;
use weir_governor::{check, config, restore, state, timeline, top, watchdog};
use weir_telemetry::Telemetry;

/// `EX_USAGE` of sysexits.h: what was given is wrong, and trying again does not help.
const BAD_CONFIGURATION: u8 = 64;
/// The watchdog is looked after so often.
const WATCHDOG: Duration = Duration::from_secs(1);
/// For pages that are being read.
const DRAIN: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let flags = flags();
    let root = Root::new(&flags.root);
    let started = match flags.command {
        Command::Run { .. } => Telemetry::start("weir-governor", flags.log_json),
        _ => Ok(Telemetry::log(flags.log_json)),
    };
    let telemetry = match started {
        Ok(telemetry) => telemetry,
        Err(error) => {
            complain(error);
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    match flags.command {
        Command::Run {
            config,
            check,
            ports_file,
        } => run(&config, check, ports_file.as_deref(), &root, telemetry),
        Command::Check => {
            let report = check::report(&root);
            // Nothing can be done if standard output is closed.
            let _ = std::io::stdout().write_all(report.text.as_bytes());
            ExitCode::from(u8::from(!report.can_govern))
        }
        Command::Top { admin, once } => ended(top(admin, once)),
        Command::Profile {
            pid,
            seconds,
            queries,
            agent,
        } => ended(profile(&weir_profile::Request {
            process: pid,
            time: Duration::from_secs(seconds),
            queries,
            agent,
        })),
        Command::Timeline { logs, out } => ended(timeline(&logs, out.as_deref())),
        Command::Watch { governor, state } => {
            let mut pipe = std::io::stdin().lock();
            told(watchdog::watch(&mut pipe, governor, &root, &state))
        }
        Command::Restore { config, state } => match remembered(config.as_deref(), state) {
            Ok(state) => told(restore::restore(&root, &state)),
            Err(code) => code,
        },
        Command::Forget {
            jobs,
            config,
            state,
        } => match remembered(config.as_deref(), state) {
            Ok(state) => forget(&state, &jobs),
            Err(code) => code,
        },
        Command::Keep { folder } => match keeper::keep(&folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(format_args!("{}: {error}", folder.display()));
                ExitCode::FAILURE
            }
        },
    }
}

/// Wrong ones end the process, as `--help` and `--version` do.
fn flags() -> Flags {
    Flags::try_parse().unwrap_or_else(|error| {
        // Nothing can be done if standard output is closed.
        let _ = error.print();
        let is_wrong = error.use_stderr();
        std::process::exit(if is_wrong {
            BAD_CONFIGURATION.into()
        } else {
            0
        });
    })
}

fn ended(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(whole(&error));
            ExitCode::FAILURE
        }
    }
}

fn profile(request: &weir_profile::Request) -> anyhow::Result<()> {
    let report = weir_profile::profile(request, &mut |doing| complain(doing))?;
    // Nothing can be done if standard output is closed.
    let _ = write!(std::io::stdout(), "{report}");
    Ok(())
}

/// The signals that end a process which does not ask for them, and that a person or a supervisor sends.
fn ends() -> [(SignalKind, &'static str); 7] {
    [
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::interrupt(), "SIGINT"),
        (SignalKind::hangup(), "SIGHUP"),
        (SignalKind::quit(), "SIGQUIT"),
        (SignalKind::alarm(), "SIGALRM"),
        (SignalKind::user_defined1(), "SIGUSR1"),
        (SignalKind::user_defined2(), "SIGUSR2"),
    ]
}

/// With its causes, but for those that it tells itself.
fn whole(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |told, cause| {
        let cause = cause.to_string();
        match told.contains(&cause) {
            true => told,
            false if told.is_empty() => cause,
            false => format!("{told}: {cause}"),
        }
    })
}

/// Nothing can be done if standard error is closed.
fn complain(error: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{error}");
}

fn run(
    path: &Path,
    check: bool,
    ports_file: Option<&Path>,
    root: &Root,
    telemetry: Telemetry,
) -> ExitCode {
    let config = match config::load(path) {
        Ok(config) => config,
        Err(error) => {
            complain(error);
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    for warning in config.warnings() {
        warn!("{warning}");
    }
    if check {
        return ExitCode::SUCCESS;
    }
    match serve(config, ports_file, root, telemetry) {
        Ok(()) => ExitCode::SUCCESS,
        // Of a frequency that the machine has not.
        Err(error) if error.is::<config::Error>() => {
            complain(error);
            ExitCode::from(BAD_CONFIGURATION)
        }
        Err(error) => {
            error!(error = whole(&error), "weir-governor has failed");
            ExitCode::FAILURE
        }
    }
}

/// The name of the signal that asks the process to end, when it comes.
fn asked_to_end() -> std::io::Result<impl Future<Output = &'static str>> {
    let mut signals = Vec::new();
    for (kind, name) in ends() {
        signals.push((signal(kind)?, name));
    }
    Ok(std::future::poll_fn(move |context| {
        let mut all = signals.iter_mut();
        let came =
            all.find_map(|(signal, name)| signal.poll_recv(context).is_ready().then_some(*name));
        came.map_or(Poll::Pending, Poll::Ready)
    }))
}

/// Two files for each policy of a large machine are more than the usual limit.
fn raise_file_limit() -> std::io::Result<()> {
    let files = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: files.maximum,
        ..files
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}

#[tokio::main(flavor = "current_thread")]
async fn serve(
    config: config::Config,
    ports_file: Option<&Path>,
    root: &Root,
    telemetry: Telemetry,
) -> anyhow::Result<()> {
    // Before the cores are taken, so that no signal finds them taken and kills.
    let asked = asked_to_end()?;
    raise_file_limit()?;
    let listener = TcpListener::bind(config.admin)
        .await
        .with_context(|| format!("admin.listen: {}", config.admin))?;
    let admin = listener.local_addr()?;
    if let Some(mesh) = &config.mesh {
        // Its files are read only now; nothing has been changed.
        mesh::endpoint(&mesh.control, &mesh.trust)
            .map_err(|error| anyhow::anyhow!("mesh: {error}"))?;
    }
    // Before anything is taken, so that there is no moment in which a kill leaves it so.
    let mut watchdog = Watchdog::start(root, &config.state_directory).context("the watchdog")?;
    let edges = Edges::of(&config);
    let governor = match Governor::start(config, root) {
        Ok(governor) => governor,
        Err(error) => {
            watchdog.end();
            return Err(error);
        }
    };
    let app = edges.start(&governor);
    let ended = CancellationToken::new();
    let running = Running::start(governor, {
        let ended = ended.clone();
        move || ended.cancel()
    })?;
    let admin_ended = CancellationToken::new();
    let exported = app.clone();
    let export = telemetry.export(async move || exported.metrics_page(), admin_ended.clone());
    let pages = admin::serve(listener, app, admin_ended.clone());
    let edges = tokio::spawn(async { tokio::join!(pages, export) });
    info!(addr = %admin, "admin listening on {admin}");
    if let Some(path) = ports_file {
        write_ports(path, &serde_json::json!({ "admin": admin }).to_string())?;
    }
    tokio::select! {
        signal = asked => info!(signal, "shutting down"),
        () = ended.cancelled() => {}
        () = keep(&mut watchdog) => {}
    }
    // First the cores: nobody who asks for pages can hold that up.
    let stopped = running.stop();
    match &stopped {
        Ok(()) => watchdog.end(),
        // It tries again when it sees that this process is gone.
        Err(_) => drop(watchdog),
    }
    admin_ended.cancel();
    // Pages that are still being read are cut off, and a collector that does not take the last figures.
    let _ = tokio::time::timeout(DRAIN, edges).await;
    stopped
}

/// The tasks beside the governor, in this thread: pages, the measurement of latency, and the links to the mesh and to
/// governors of other nodes.
struct Edges {
    functions: Vec<(u8, String)>,
    logs: Option<PathBuf>,
    tail: config::Tail,
    /// Of the services beside the first.
    others: Vec<config::Tail>,
    mesh: Option<config::Mesh>,
    trust: config::Trust,
}

impl Edges {
    fn of(config: &config::Config) -> Self {
        let shares = config.shares.as_ref();
        Self {
            functions: config.functions.clone(),
            logs: shares.map(|shares| shares.batch.logs.clone()),
            tail: config.tail.clone(),
            others: shares.map_or_else(Vec::new, |shares| {
                shares
                    .others
                    .iter()
                    .map(|other| other.tail.clone())
                    .collect()
            }),
            mesh: config.mesh.clone(),
            trust: shares.map_or_else(Default::default, |shares| shares.division.peers().1),
        }
    }

    /// Starts what has a task of its own; the pages are the caller's to serve.
    fn start(self, governor: &Governor) -> App {
        tokio::spawn(measure(self.tail, governor.measured()));
        for (tail, measured) in self.others.into_iter().zip(governor.measured_others()) {
            tokio::spawn(measure(tail, measured));
        }
        if let Some(mesh) = self.mesh {
            tokio::spawn(mesh::connect(mesh, governor.link()));
        }
        tokio::spawn(governor.peers().ask(self.trust));
        App::new(governor.book(), self.functions).with_timeline(self.logs)
    }
}

/// Keeps a watchdog there for as long as it is asked.
async fn keep(watchdog: &mut Watchdog) {
    loop {
        tokio::time::sleep(WATCHDOG).await;
        watchdog.look();
    }
}

#[tokio::main(flavor = "current_thread")]
async fn top(admin: SocketAddr, once: bool) -> anyhow::Result<()> {
    top::show(admin, once).await
}

/// The directory that the governor remembers in, by its file if there is one.
fn remembered(config: Option<&Path>, state: PathBuf) -> Result<PathBuf, ExitCode> {
    let Some(path) = config else {
        return Ok(state);
    };
    config::state_directory(path).map_err(|error| {
        complain(error);
        ExitCode::from(BAD_CONFIGURATION)
    })
}

fn forget(state: &Path, jobs: &[String]) -> ExitCode {
    match forget::forget(state, jobs) {
        Ok(forgotten) => {
            for name in forgotten {
                // Nothing can be done if standard output is closed.
                let _ = writeln!(std::io::stdout(), "{name}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}

fn told(left: Result<Vec<String>, state::Error>) -> ExitCode {
    match left {
        Ok(left) if left.is_empty() => ExitCode::SUCCESS,
        Ok(left) => {
            for error in left {
                error!(%error, "not put back");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            error!(%error, "nothing was put back");
            ExitCode::FAILURE
        }
    }
}

fn timeline(logs: &Path, out: Option<&Path>) -> anyhow::Result<()> {
    let page = timeline::page::html(logs)?;
    match out {
        Some(path) => std::fs::write(path, page).with_context(|| path.display().to_string()),
        None => Ok(std::io::stdout().write_all(page.as_bytes())?),
    }
}

/// A reader that waits for the file never sees half of it.
fn write_ports(path: &Path, text: &str) -> anyhow::Result<()> {
    weir_whole_file::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
