// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Sets core frequencies by what the service runs, and puts them back.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Flags {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// Log lines as JSON.
    #[arg(long, global = true)]
    pub log_json: bool,
    /// Kernel files are those under this folder.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/",
        hide = true
    )]
    pub root: PathBuf,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Govern until SIGTERM or any such signal; then put back what was found: 0 if all was, 1 if not.
    Run {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Check the file and exit: 0 if it is good, 64 if not. What this machine lacks is seen at the start, and by `check`.
        #[arg(long)]
        check: bool,
        /// Write the bound address there, as {"admin":"ip:port"}, once cores are governed.
        #[arg(long, value_name = "FILE", conflicts_with = "check")]
        ports_file: Option<PathBuf>,
    },
    /// Say what the machine offers, what is missing, and how to get it; 0 if cores can be governed or divided, 1 if not.
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
    /// Find the hot functions of a running program, and propose a configuration that names one. Send it meanwhile the
    /// queries that it is there for. It is as before afterwards.
    Profile {
        /// Its process.
        #[arg(long, value_name = "PID")]
        pid: NonZeroU32,
        /// Sample stacks for so long, and then observe calls as long.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=300))]
        seconds: u64,
        /// Queries that it answers a second meanwhile, to tell calls of each.
        #[arg(long, value_name = "RATE", value_parser = a_rate)]
        queries: Option<f64>,
        /// The jar of weir-events-agent, to observe calls in a JVM.
        #[arg(long, value_name = "JAR")]
        agent: Option<PathBuf>,
    },
    /// Make a page of what happened to the service's cores and the jobs.
    Timeline {
        /// The folder of the jobs' logs, which has timeline.jsonl.
        #[arg(long, value_name = "DIR")]
        logs: PathBuf,
        /// Write it there; otherwise to standard output.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Wait until a governor is gone, and put back what it has left: what `run` starts beside itself.
    #[command(hide = true)]
    Watch {
        /// Its process.
        #[arg(long, value_name = "PID")]
        governor: u32,
        /// Where it remembers.
        #[arg(long, value_name = "DIR")]
        state: PathBuf,
    },
    /// Put back what a governor has left that was killed. Changes nothing where none was.
    Restore {
        /// The governor's configuration file, which says where it remembers.
        #[arg(long, value_name = "FILE", conflicts_with = "state")]
        config: Option<PathBuf>,
        /// Where it remembers, without a file.
        #[arg(long, value_name = "DIR", default_value = "/run/weir")]
        state: PathBuf,
    },
    /// Let batch jobs that have ended be started again, when the governor is started next; none if one of those
    /// that are named has not ended.
    Forget {
        /// All that have ended, if none is named.
        #[arg(value_name = "JOB")]
        jobs: Vec<String>,
        /// The governor's configuration file, which says where it remembers.
        #[arg(long, value_name = "FILE", conflicts_with = "state")]
        config: Option<PathBuf>,
        /// Where it remembers, without a file.
        #[arg(long, value_name = "DIR", default_value = "/run/weir")]
        state: PathBuf,
    },
    /// Stay with a batch job until it has ended. What the governor starts.
    #[command(hide = true)]
    Keep {
        /// The job's, in the state directory.
        folder: PathBuf,
    },
}

/// A number above 0.
fn a_rate(written: &str) -> Result<f64, String> {
    let rate = written.parse::<f64>().ok();
    let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "not a number above 0".to_owned())
}
