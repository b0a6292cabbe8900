// SPDX-License-Identifier: Apache-2.0
//! Gathers load and cache contents of hosts and pushes them to sidecars.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use weir_control::config::Config;
use weir_control::flags::Flags;
use weir_control::{Listeners, config, run, sources};
use weir_telemetry::Telemetry;

/// `EX_USAGE` of sysexits.h: what was given is wrong, and trying again does not help.
const BAD_CONFIGURATION: u8 = 64;
/// For streams to end. Sidecars keep their tables, so nothing is lost by cutting them off.
const DRAIN: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let flags = Flags::try_parse().unwrap_or_else(|error| {
        // Nothing can be done if standard output is closed.
        let _ = error.print();
        let is_wrong = error.use_stderr();
        std::process::exit(if is_wrong {
            BAD_CONFIGURATION.into()
        } else {
            0
        });
    });
    let telemetry = match Telemetry::start("weir-control", flags.log_json) {
        Ok(telemetry) => telemetry,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    let loaded = match config::load(&flags.config) {
        Ok(loaded) => loaded,
        Err((error, _)) => {
            eprintln!("{error}");
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    let wants = loaded.config.wants();
    if flags.check {
        let summary = format!("ok: {}", loaded.config.summary());
        let text = [vec![summary], wants].concat().join("\n");
        // Nothing can be done if standard output is closed.
        let _ = writeln!(std::io::stdout(), "{text}");
        return match flags.probe {
            true => probe(loaded.config),
            false => ExitCode::SUCCESS,
        };
    }
    for want in wants {
        warn!("{want}");
    }
    allow_open_files();
    match serve(flags, loaded, telemetry) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!(error = format!("{error:#}"), "weir-control has failed");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn probe(config: Arc<Config>) -> ExitCode {
    let report = sources::probe::probe(config).await;
    // Nothing can be done if standard output is closed.
    let _ = writeln!(std::io::stdout(), "{}", report.lines.join("\n"));
    match report.is_good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Each sidecar and each host is a connection, and the usual 1,024 are there for programs that cannot take
/// more, which this one can.
fn allow_open_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most));
    if let Err(error) = raised {
        warn!(%error, "the limit of open files stays as it is");
    }
}

#[tokio::main]
async fn serve(flags: Flags, loaded: config::Loaded, telemetry: Telemetry) -> anyhow::Result<()> {
    // Before the ports are told: whoever reads them may send the signal at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listeners = Listeners::bind(&loaded.config).await?;
    let (xds, admin) = (listeners.xds.local_addr()?, listeners.admin.local_addr()?);
    info!(addr = %xds, "xds listening on {xds}");
    info!(addr = %admin, "admin listening on {admin}");
    if let Some(path) = &flags.ports_file {
        write_ports(
            path,
            &serde_json::json!({ "xds": xds, "admin": admin }).to_string(),
        )?;
    }
    let shutdown = CancellationToken::new();
    let running = run(flags.config, loaded, listeners, telemetry, shutdown.clone());
    tokio::pin!(running);
    tokio::select! {
        result = &mut running => return result,
        _ = terminate.recv() => info!(signal = "SIGTERM", "shutting down"),
        _ = interrupt.recv() => info!(signal = "SIGINT", "shutting down"),
    }
    shutdown.cancel();
    tokio::time::timeout(DRAIN, running)
        .await
        .unwrap_or_else(|_| {
            info!(limit = ?DRAIN, "streams cut off");
            Ok(())
        })
}

/// A reader that waits for the file never sees half of it.
fn write_ports(path: &Path, text: &str) -> anyhow::Result<()> {
    weir_whole_file::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
