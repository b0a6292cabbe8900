// SPDX-License-Identifier: Apache-2.0
//! `weir-replay run`.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use http::HeaderValue;
use weir_replay::backoff::Backoff;
use weir_replay::bodies::Bodies;
use weir_replay::dispatch::{self, Pace};
use weir_replay::exchange::{Sender, Settings};
use weir_replay::recorder::{self, Sink};
use weir_replay::summary::Figures;
use weir_replay::workload::Request;
use weir_replay::{table, units, workload};

/// Sends each request of the file at its offset, whatever the answers do. Durations count from the
/// offset. Nothing is sent before the whole file, and every body it names, has been read and found
/// valid.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Workload file: NDJSON or CSV with the fields t_us,key,priority,user,run_us,bytes and
    /// perhaps body; may be gzipped.
    #[arg(long, value_name = "FILE")]
    workload: PathBuf,
    /// Folder of the bodies that the workload names; those requests are POSTs of JSON, the others
    /// GETs.
    #[arg(long, value_name = "DIR")]
    bodies: Option<PathBuf>,
    /// Where to send, IP:PORT; given several times, they take turns as so many callers.
    #[arg(long, value_name = "IP:PORT", required = true)]
    target: Vec<SocketAddr>,
    /// Send to other machines too; otherwise only loopback targets are accepted.
    #[arg(long)]
    allow_remote: bool,
    /// Host header (default: the target).
    #[arg(long, value_name = "HOST")]
    host_header: Option<HeaderValue>,
    /// Path and query of every request.
    #[arg(long, default_value = "/", value_parser = parse_path)]
    path: String,
    /// Divide offsets by this.
    #[arg(long, default_value = "1", value_parser = units::positive)]
    speed: f64,
    /// Attempts at most for a request; 429, 503 and broken connections are tried again.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    max_attempts: u32,
    /// From a request's offset to the end of its last attempt.
    #[arg(long, default_value = "60s", value_parser = units::duration)]
    deadline: Duration,
    /// Upper end of the back-off before the first retry; it doubles with each, with full jitter,
    /// and comes on top of what retry-after asks for.
    #[arg(long, default_value = "100ms", value_parser = units::duration)]
    backoff_base: Duration,
    /// Upper end that the back-off grows to.
    #[arg(long, default_value = "10s", value_parser = units::duration)]
    backoff_cap: Duration,
    /// Requests under way at most; those beyond fail unsent with the reason replayer_full.
    #[arg(long, default_value_t = 10_000)]
    max_in_flight: usize,
    /// Seed of the jitter.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write a line for each request: .csv, .csv.gz, .ndjson or .ndjson.gz.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the figures as JSON (default: standard output).
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

/// Files open besides connections.
const SPARE_FILES: usize = 64;

#[derive(Debug)]
enum Ended {
    Complete,
    Interrupted,
}

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(remote) = self.target.iter().find(|t| !t.ip().is_loopback())
            && !self.allow_remote
        {
            bail!("target {remote} is not on this machine; --allow-remote permits it");
        }
        let name = self.workload.display();
        let input = table::open(&self.workload).with_context(|| format!("cannot read {name}"))?;
        let mut bodies = Bodies::new(self.bodies.clone());
        let requests = workload::read_each(input, |line, request| bodies.load(line, request))
            .with_context(|| format!("{name} is refused"))?;
        let sink = self.out.as_deref().map(Sink::create).transpose();
        let sink = sink.context("--out cannot be written")?;
        let (figures, ended) = self.replay(requests, bodies, sink)?;
        let text = serde_json::to_string_pretty(&figures.summary())? + "\n";
        match &self.summary {
            Some(file) => fs::write(file, text).context("--summary cannot be written")?,
            None => print!("{text}"),
        }
        match ended {
            Ended::Complete => Ok(()),
            Ended::Interrupted => bail!("interrupted: the figures are of what had ended by then"),
        }
    }

    fn replay(
        &self,
        requests: Vec<Request>,
        bodies: Bodies,
        sink: Option<Sink>,
    ) -> anyhow::Result<(Figures, Ended)> {
        let total = requests.len();
        let sender = Arc::new(Sender::new(self.settings(), bodies));
        let pace = Pace {
            speed: self.speed,
            max_in_flight: self.in_flight(),
        };
        let (outbox, inbox) = mpsc::channel();
        let recorder = thread::spawn(move || recorder::record(&inbox, sink, total));
        // One thread: thousands of requests a second fit, and the cores belong to what is tested.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let ended = runtime.block_on(async {
            tokio::select! {
                () = dispatch::replay(requests, sender, &pace, &outbox) => Ended::Complete,
                _ = tokio::signal::ctrl_c() => Ended::Interrupted,
            }
        });
        drop(outbox);
        match recorder.join() {
            Ok(figures) => Ok((figures.context("records cannot be written")?, ended)),
            Err(_) => bail!("the recorder panicked"),
        }
    }

    /// Each request under way may need a connection, and running out of files would look like a
    /// fault of the hosts.
    fn in_flight(&self) -> usize {
        let asked = self.max_in_flight.max(1);
        let Some(files) = open_files_limit() else {
            return asked;
        };
        let possible = files.saturating_sub(SPARE_FILES).max(1);
        if possible < asked {
            eprintln!("at most {possible} requests in flight: {files} open files are allowed");
        }
        asked.min(possible)
    }

    fn settings(&self) -> Settings {
        Settings {
            targets: self.target.clone(),
            host_header: self.host_header.clone(),
            path: self.path.clone(),
            max_attempts: self.max_attempts,
            deadline: self.deadline,
            backoff: Backoff {
                base: self.backoff_base,
                cap: self.backoff_cap,
            },
            seed: self.seed,
        }
    }
}

/// The soft limit of this process, where the system shows it.
fn open_files_limit() -> Option<usize> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn parse_path(text: &str) -> Result<String, String> {
    match text.parse::<http::uri::PathAndQuery>() {
        Ok(_) if text.starts_with('/') => Ok(text.to_owned()),
        Ok(_) => Err("does not begin with /".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
