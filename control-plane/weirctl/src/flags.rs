// SPDX-License-Identifier: Apache-2.0
//! The command line.

pub mod consul;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::collect::MOST;
use crate::page::Address;
use crate::screen::Format;

/// Shows what Weir does and why, and finds the link that is broken
///
/// Everything is read from admin pages, and nothing is changed but by `consul apply` and `consul remove`.
#[derive(Debug, Parser)]
#[command(name = "weirctl", version, after_help = EXAMPLES)]
pub struct Flags {
    /// weir-control's admin address; repeatable, for its replicas
    #[arg(
        long,
        global = true,
        value_name = "IP:PORT",
        value_delimiter = ',',
        default_value = "127.0.0.1:19000"
    )]
    pub control: Vec<Address>,
    /// The form of the answer
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub output: Format,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "Examples:
  weirctl status
  weirctl doctor --envoy 127.0.0.1:9901
  weirctl -o json hosts rules";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the whole fleet in a few lines
    #[command(after_help = "Example: weirctl status --control 127.0.0.1:19000")]
    Status,
    /// Show hosts with what is known of them, those in trouble first
    #[command(after_help = "Example: weirctl hosts rules")]
    Hosts(OfCluster),
    /// Show which host a request would go to, and why
    #[command(after_help = "Example: weirctl explain rules feed-7 --priority high")]
    Explain(Explain),
    /// Show which requests each host admits, the least first
    #[command(after_help = "Example: weirctl levels rules")]
    Levels(OfCluster),
    /// Show sidecars with the tables that they have and refuse
    #[command(after_help = "Example: weirctl sidecars")]
    Sidecars,
    /// Show decisions as they end, term by term, and what came of them, until it is stopped
    #[command(after_help = "Example: weirctl tail --cluster rules --host 10.0.0.7:8080")]
    Tail(Tail),
    /// Show what was with Envoy's own choice, beside what would have been with the filter's
    ///
    /// By the receipts that weir-control has, at most 4,096. A forecast of the mean is what was, and by how much the
    /// estimate for the host that was chosen differs from the one for the host that it was.
    #[command(after_help = "Example: weirctl shadow rules")]
    Shadow(Shadow),
    /// Show what differs between two replicas, or in one between two moments
    #[command(
        after_help = "Examples:\n  weirctl diff --control 10.0.0.1:19000,10.0.0.2:19000\n  weirctl diff --after 10s"
    )]
    Diff(Diff),
    /// Walk every link from callers' Envoys to the hosts, and name the broken one; exit code 1 if there is one
    #[command(
        after_help = "Example: weirctl doctor --envoy 127.0.0.1:9901 --control 127.0.0.1:19000"
    )]
    Doctor(Doctor),
    /// Write, verify or take out what a Consul mesh needs to choose hosts by Weir
    #[command(after_help = "Example: weirctl consul check --help")]
    Consul(Box<consul::Consul>),
    /// Take the access logs that callers' Envoys stream, and write them as a log for `capture`
    ///
    /// It ends by SIGINT or SIGTERM, after `--for`, or when it has `--requests`. Keys and users stand in the log as they are,
    /// and the streams are not encrypted: it listens on loopback alone. In a mesh its own sidecar takes them from other nodes.
    #[command(after_help = "Example: weirctl collect --out access.log --for 60m")]
    Collect(Collect),
    /// Make a workload for `weir-sim what-if` of callers' access logs or of receipts
    ///
    /// Times in hosts' queues are taken out of what was logged; how, and what cannot be known, is in CAPTURE.md. Keys and
    /// users are written as hashes.
    #[command(after_help = "Example: weirctl capture access.log --cores 4 --out hour.ndjson")]
    Capture(Capture),
    /// Write completions for a shell to standard output
    #[command(after_help = "Example: weirctl completions bash > /etc/bash_completion.d/weirctl")]
    Completions(Completions),
    /// Write manual pages into a folder
    #[command(after_help = "Example: weirctl man /usr/local/share/man/man1")]
    Man(Man),
}

/// Which clusters.
#[derive(Debug, Args)]
pub struct OfCluster {
    /// Its name in weir-control [default: all]
    pub cluster: Option<String>,
}

/// A request that might be sent.
#[derive(Debug, Args)]
pub struct Explain {
    /// The cluster's name in weir-control
    pub cluster: String,
    /// What the request would carry in x-weir-key
    #[arg(default_value = "")]
    pub key: String,
    /// The key is a list in prefix order, separated so
    #[arg(long, value_name = "CHARACTER")]
    pub key_separator: Option<char>,
    /// `high`, `low` or 0 to 31 [default: low]
    #[arg(long)]
    pub priority: Option<String>,
    /// What the request would carry in x-weir-user
    #[arg(long)]
    pub user: Option<String>,
    /// The zone of its caller [default: unknown]
    #[arg(long)]
    pub zone: Option<String>,
}

/// Which receipts.
#[derive(Debug, Args)]
pub struct Tail {
    /// Only of this cluster
    #[arg(long)]
    pub cluster: Option<String>,
    /// Only of proxies with this in their node id
    #[arg(long, value_name = "TEXT")]
    pub proxy: Option<String>,
    /// Only of requests that were at this host, or should have gone there first
    #[arg(long, value_name = "IP:PORT")]
    pub host: Option<String>,
    /// Only with this key's hash, as `explain -o json` prints it
    #[arg(long, value_name = "HASH")]
    pub key: Option<String>,
    /// End after those that are there, instead of waiting for more
    #[arg(long)]
    pub once: bool,
    /// Begin with so many of those that are there
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 10)]
    pub last: usize,
}

/// Which cluster.
#[derive(Debug, Args)]
pub struct Shadow {
    /// Its name in weir-control
    pub cluster: String,
}

/// What to compare.
#[derive(Debug, Args)]
pub struct Diff {
    /// Compare one weir-control with itself so much later: a whole number with `ms`, `s` or `m`, at most 1 h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub after: Option<Duration>,
}

/// Whom to ask.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Admin address of a caller's Envoy; repeatable. Without one the callers' half is not looked at
    #[arg(long, value_name = "IP:PORT", value_delimiter = ',')]
    pub envoy: Vec<Address>,
}

/// From where, and how much.
#[derive(Debug, Args)]
pub struct Collect {
    /// Where Envoys stream to; on loopback
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:18100", value_parser = loopback)]
    pub listen: SocketAddr,
    /// The log; a file that is there is not written over
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// End after this time: a whole number with `ms`, `s` or `m`, at most 60m [default: when it is stopped]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub lasts: Option<Duration>,
    /// End after so many requests; `capture` takes no more
    #[arg(long, value_name = "NUMBER", default_value_t = MOST, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    pub requests: u64,
}

/// Of what, and where to.
#[derive(Debug, Args)]
pub struct Capture {
    /// Access logs of all callers' Envoys, of the same time, with the fields of envoy-config/static/access-log.yaml; or
    /// weir-control's files of receipts, by receipt_every 1
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Only receipts of this cluster [default: the one that there is]
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Cores of one host
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub cores: u32,
    /// To fetch the data of a key takes so long [default: by how much a key's first requests at hosts took longer]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub fetch: Option<Duration>,
    /// Keep keys and users as they are, instead of their hashes
    #[arg(long)]
    pub keep_names: bool,
    /// Where to write the workload (NDJSON)
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// For which shell.
#[derive(Debug, Args)]
pub struct Completions {
    /// Its name
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Where to.
#[derive(Debug, Args)]
pub struct Man {
    /// A folder that is there
    pub folder: PathBuf,
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "write an address and a port, such as 127.0.0.1:18100".to_owned())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err("only addresses of loopback: what comes is not encrypted".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 3] = [("ms", 1), ("s", 1_000), ("m", 60_000)];
    const MOST: Duration = Duration::from_secs(3_600);
    let parsed = UNITS.iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*ms).map(Duration::from_millis)
    });
    let parsed = parsed.ok_or("write a whole number with ms, s or m, such as 10s")?;
    match parsed <= MOST {
        true => Ok(parsed),
        false => Err("at most 60m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_an_end() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        for bad in ["", "10", "s", "-1s", "61m", "99999999999999999999m"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
