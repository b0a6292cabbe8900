// SPDX-License-Identifier: Apache-2.0
//! Sets core frequencies by what the service runs, and puts them back.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use tracing_subscriber::EnvFilter;
use weir_governor::admin::{self, App};
use weir_governor::config::TailSource;
use weir_governor::root::Root;
use weir_governor::run::{Governor, Running};
use weir_governor::sense::page;
use weir_governor::{apply, check, config, top};

/// `EX_USAGE` of sysexits.h: what was given is wrong, and trying again does not help.
const BAD_CONFIGURATION: u8 = 64;
/// For pages that are being read.
const DRAIN: Duration = Duration::from_secs(1);

/// Sets core frequencies by what the service runs, and puts them back.
#[derive(Debug, Parser)]
#[command(version)]
struct Flags {
    #[command(subcommand)]
    command: Command,
    /// Log lines as JSON.
    #[arg(long, global = true)]
    log_json: bool,
    /// Kernel files are those under this folder.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/",
        hide = true
    )]
    root: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Govern until SIGTERM, SIGINT or SIGHUP; then put back what was found.
    Run {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Check the configuration and exit: 0 if it is good, 64 if not.
        #[arg(long)]
        check: bool,
        /// Write the bound address there, as {"admin":"ip:port"}, once cores are governed.
        #[arg(long, value_name = "FILE", conflicts_with = "check")]
        ports_file: Option<PathBuf>,
    },
    /// Say what the machine offers, what is missing, and how to get it; 0 if cores can be governed, 1 if not.
    Check,
    /// Show what the cores do, every second.
    Top {
        /// Where the governor's admin page listens.
        #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9414")]
        admin: SocketAddr,
        /// Print it once, with every core, and exit.
        #[arg(long)]
        once: bool,
    },
    /// Put back what a governor has left that was killed. Changes nothing where none was.
    Restore {
        /// Where the governor remembers; its configuration's state_directory.
        #[arg(long, value_name = "DIR", default_value = "/run/weir")]
        state: PathBuf,
    },
}

fn main() -> ExitCode {
    let flags = Flags::try_parse().unwrap_or_else(|error| {
        let code = if error.use_stderr() {
            i32::from(BAD_CONFIGURATION)
        } else {
            0
        };
        // Nothing can be done if standard output is closed.
        let _ = error.print();
        std::process::exit(code);
    });
    log(flags.log_json);
    let root = Root::new(&flags.root);
    match flags.command {
        Command::Run {
            config,
            check,
            ports_file,
        } => run(&config, check, ports_file.as_deref(), &root),
        Command::Check => {
            let report = check::report(&root);
            // Nothing can be done if standard output is closed.
            let _ = std::io::stdout().write_all(report.text.as_bytes());
            ExitCode::from(u8::from(!report.can_govern))
        }
        Command::Top { admin, once } => match top(admin, once) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error:#}");
                ExitCode::FAILURE
            }
        },
        Command::Restore { state } => restore(&state, &root),
    }
}

fn log(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    if json {
        log.json().init();
    } else {
        log.init();
    }
}

fn run(path: &Path, check: bool, ports_file: Option<&Path>, root: &Root) -> ExitCode {
    let config = match config::load(path) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    if check {
        return ExitCode::SUCCESS;
    }
    match serve(config, ports_file, root) {
        Ok(()) => ExitCode::SUCCESS,
        // Of a frequency that the machine has not.
        Err(error) if error.is::<config::Error>() => {
            eprintln!("{error}");
            ExitCode::from(BAD_CONFIGURATION)
        }
        Err(error) => {
            error!(error = format!("{error:#}"), "weir-governor has failed");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn serve(
    config: config::Config,
    ports_file: Option<&Path>,
    root: &Root,
) -> anyhow::Result<()> {
    // Before the cores are taken, so that no signal finds them taken and kills.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let listener = TcpListener::bind(config.admin)
        .await
        .with_context(|| format!("admin.listen: {}", config.admin))?;
    let admin = listener.local_addr()?;
    let (functions, settings) = (config.functions.clone(), config.tail.clone());
    let governor = Governor::start(config, root)?;
    let app = App::new(governor.book(), functions);
    if let TailSource::Page(page) = settings.source.clone() {
        tokio::spawn(page::measure(page, settings, governor.measured()));
    }
    let ended = CancellationToken::new();
    let running = Running::start(governor, {
        let ended = ended.clone();
        move || ended.cancel()
    })?;
    let admin_ended = CancellationToken::new();
    let pages = tokio::spawn(admin::serve(listener, app, admin_ended.clone()));
    info!(addr = %admin, "admin listening on {admin}");
    if let Some(path) = ports_file {
        write_ports(path, &serde_json::json!({ "admin": admin }).to_string())?;
    }
    tokio::select! {
        _ = terminate.recv() => info!(signal = "SIGTERM", "shutting down"),
        _ = interrupt.recv() => info!(signal = "SIGINT", "shutting down"),
        _ = hang_up.recv() => info!(signal = "SIGHUP", "shutting down"),
        () = ended.cancelled() => {}
    }
    // First the cores: nobody who asks for pages can hold that up.
    let stopped = running.stop();
    admin_ended.cancel();
    // Whoever still reads a page is cut off.
    let _ = tokio::time::timeout(DRAIN, pages).await;
    stopped
}

#[tokio::main(flavor = "current_thread")]
async fn top(admin: SocketAddr, once: bool) -> anyhow::Result<()> {
    top::show(admin, once).await
}

fn restore(state: &Path, root: &Root) -> ExitCode {
    match apply::restore(root, state) {
        Ok(left) if left.is_empty() => ExitCode::SUCCESS,
        Ok(left) => {
            for (policy, error) in left {
                error!(policy, %error, "not put back");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            error!(%error, "nothing was put back");
            ExitCode::FAILURE
        }
    }
}

/// Whoever waits for the file never sees half of it.
fn write_ports(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
