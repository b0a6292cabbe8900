// SPDX-License-Identifier: Apache-2.0
//! What the governor is told, checked. Nothing after this module checks a setting again, but what depends on
//! the machine: frequencies, against each core's table ([`Config::fits`]).

mod check;
mod frequency;
pub mod shares;
mod written;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shares::Division;
pub use shares::{Network, Service, Shares};
pub use weir_settings::{Error, show_duration};

use crate::apply::Driver;
use crate::book::energy::Class;
use crate::energy::Power;
use crate::frequency::{Frequency, Policy, Range};
use crate::node::Node;
use crate::pressure;

/// Everything that can be set.
#[derive(Debug)]
pub struct Config {
    /// Those that are governed; none: all that have cpufreq and are online at the start.
    pub cores: Option<Vec<u32>>,
    /// How frequencies are set; none: what the machine offers.
    pub driver: Option<Driver>,
    /// Between two decisions.
    pub tick: Duration,
    /// How frequencies are chosen; none: they are left alone.
    pub policy: Option<Policy>,
    /// How cores are divided; none: they are left alone.
    pub shares: Option<Shares>,
    /// Whom to ask for the service's host, and to tell what it has.
    pub mesh: Option<Mesh>,
    /// Names of hot functions, by id; for what is shown.
    pub functions: Vec<(u8, String)>,
    /// What energy is attributed by.
    pub energy: Energy,
    /// Where producers tell of hot functions.
    pub events: Events,
    /// Hot functions of programs that cannot tell of them.
    pub uprobes: Vec<Uprobe>,
    /// Where the service's own latency is measured.
    pub tail: Tail,
    /// Where the admin page listens.
    pub admin: SocketAddr,
    /// Where it is remembered how the cores were found.
    pub state_directory: PathBuf,
    /// Where the policy and its frequencies were written; none where there is none.
    places: Option<Places>,
}

/// What energy is attributed by.
#[derive(Clone, Debug, PartialEq)]
pub struct Energy {
    /// Watts by state.
    pub power: Power,
    /// Of each hot function.
    pub classes: Vec<Class>,
}

/// weir-control, and the host that it knows the service by.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    /// `http://ip:port` or `https://name:port`, of its xDS listener.
    pub control: String,
    /// Of `https` alone.
    pub trust: Trust,
    /// Name of the cluster.
    pub cluster: String,
    /// Address of the host, as weir-control has it.
    pub host: String,
    /// When its figures are a reason to act.
    pub pressure: pressure::Params,
}

/// Whom to believe over TLS, and who the governor is there.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// PEM: the authority of the other side's certificate; of `https` alone.
    pub authority: Option<Vec<u8>>,
    /// PEM, certificate and key: who the governor is.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Whence: authority, certificate and key.
    pub files: [Option<PathBuf>; 3],
}

impl Trust {
    /// With its files as they are by now: certificates are renewed. One that cannot be read stays as it was.
    #[must_use]
    pub fn renewed(&self) -> Self {
        let now = |file: &Option<PathBuf>, before: &[u8]| {
            let read = file
                .as_ref()
                .and_then(|file| weir_settings::read(file).ok());
            read.unwrap_or_else(|| before.to_owned())
        };
        let [authority, certificate, key] = &self.files;
        let identity = self.identity.as_ref();
        Self {
            authority: self.authority.as_ref().map(|it| now(authority, it)),
            identity: identity.map(|(ours, secret)| (now(certificate, ours), now(key, secret))),
            files: self.files.clone(),
        }
    }
}

impl std::fmt::Debug for Trust {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trust").finish_non_exhaustive()
    }
}

/// A hot function of a program that cannot tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uprobe {
    /// Where it is.
    pub probe: weir_uprobe::Probe,
    /// Only processes in this cgroup, or in one below it, by its path below the mount; none: every one.
    pub cgroup: Option<String>,
}

/// The file that producers write to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// Made by the governor, with its folder.
    pub path: PathBuf,
    /// Who may write, besides the governor's own user.
    pub group: Option<u32>,
    /// Threads at once.
    pub lanes: u32,
    /// Events of a thread that wait to be read; a power of two.
    pub events_per_lane: u32,
}

/// The service's own latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// Who measures it.
    pub source: TailSource,
    /// Of the requests, so large a share is no slower.
    pub quantile: f64,
    /// Requests of this time count; of a query, it is for the query to say.
    pub window: Duration,
    /// A page or a server is asked this often.
    pub every: Duration,
}

/// Who measures the service's latency.
#[derive(Clone, Debug, PartialEq)]
pub enum TailSource {
    /// The governor itself: calls of hot functions that have ended.
    Calls,
    /// A histogram on a page of metrics.
    Page(Page),
    /// A query of a Prometheus server, whose one value is seconds.
    Query(Query),
}

/// A query of a Prometheus server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// `ip:port`
    pub address: SocketAddr,
    /// In front of `/api/v1/query`; empty or beginning with a slash.
    pub prefix: String,
    /// PromQL. An answer with no series, more than one, or one that is no number says nothing.
    pub query: String,
}

/// A histogram, as Prometheus and Envoy show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// `ip:port`
    pub address: SocketAddr,
    /// Of the page.
    pub path: String,
    /// The histogram's name, without `_bucket`; series are those that have its labels, added up.
    pub metric: String,
    /// In seconds of one unit of its bounds: 1 for Prometheus, 0.001 for Envoy.
    pub unit: f64,
}

/// Where the policy and its frequencies were written, for errors that only the machine can tell.
#[derive(Debug)]
struct Places {
    /// An error without its reason.
    policy: Error,
    /// Those that were written and those that are defaults.
    frequencies: Vec<(Frequency, Error)>,
}

impl Config {
    /// Refuses frequencies that a core does not have, for the kernel would take the next and say nothing; and
    /// what cannot be meant on these cores.
    pub fn fits(&self, node: &Node) -> Result<(), Error> {
        for (frequency, place) in self.places.iter().flat_map(|places| &places.frequencies) {
            for core in &node.cores {
                let Frequency::Absolute(wanted) = *frequency else {
                    continue;
                };
                if has(&core.range, wanted) {
                    continue;
                }
                let reason = format!(
                    "cpu{} has no {wanted}; it has {}; a share as in 62 % takes the next above",
                    core.number,
                    show_range(&core.range)
                );
                return Err(Error {
                    reason,
                    ..place.clone()
                });
            }
        }
        self.means(node)
    }

    /// What is allowed and may not be what is wanted.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let nothing_hot = self.functions.is_empty() && self.uprobes.is_empty();
        if let (Some(policy), Some(places)) = (&self.policy, &self.places)
            && policy.waits_for_calls()
            && nothing_hot
        {
            let warning = format!(
                "{} keeps every core slow until a program tells of its calls: neither functions nor uprobes name any; policy.schedutil goes by CPU use",
                places.policy.field
            );
            warnings.push(warning);
        }
        let Some(shares) = &self.shares else {
            return warnings;
        };
        let by_latency = matches!(shares.division, Division::LatencySlack(_));
        let alone = match shares.division {
            Division::Parties(_) | Division::HipsterCo(_) => shares.division.by_latency(),
            _ => None,
        };
        if let Some(policy) = alone.filter(|_| self.tail.source == TailSource::Calls && nothing_hot)
        {
            let warning = format!(
                "core_policy.{policy} goes by latency alone, and nothing tells of it: the service keeps all; tail.source is calls, and neither functions nor uprobes name any"
            );
            warnings.push(warning);
        }
        if by_latency && self.tail.source == TailSource::Calls && nothing_hot {
            let warning = "core_policy.latency_slack goes by CPU use alone unless programs tell of hot functions: tail.source is calls, and neither functions nor uprobes name any";
            warnings.push(warning.to_owned());
        }
        if shares.jobs.is_empty() {
            warnings.push("core_policy has no jobs: cores that it keeps for them idle".to_owned());
        }
        warnings
    }

    /// Refuses parameters that cannot be meant.
    fn means(&self, node: &Node) -> Result<(), Error> {
        let (Some(policy), Some(places)) = (&self.policy, &self.places) else {
            return Ok(());
        };
        policy.check(node).map_err(|wrong| {
            let place = places.policy.clone();
            Error {
                field: format!("{}.{}", place.field, wrong.field),
                reason: wrong.reason,
                ..place
            }
        })
    }
}

fn has(range: &Range, wanted: crate::frequency::Khz) -> bool {
    (range.min..=range.max).contains(&wanted)
        && (range.steps.is_empty() || range.steps.contains(&wanted))
}

/// `1 GHz, 1.6 GHz, 2 GHz` or `0.8 GHz to 3.4 GHz`.
pub fn show_range(range: &Range) -> String {
    if range.steps.is_empty() {
        return format!("{} to {}", range.min, range.max);
    }
    let steps: Vec<String> = range.steps.iter().map(ToString::to_string).collect();
    steps.join(", ")
}

/// Reads and checks the file.
pub fn load(path: &Path) -> Result<Config, Error> {
    let config = check::file(path, read(path)?)?;
    // What needs no machine to be told.
    config.means(&Node { cores: Vec::new() })?;
    Ok(config)
}

/// Where the governor remembers, and nothing else: what a killed one has left can be put back also when a job's
/// program is gone.
pub fn state_directory(path: &Path) -> Result<PathBuf, Error> {
    check::state_directory(path, &read(path)?)
}

fn read(path: &Path) -> Result<written::File, Error> {
    let contents = weir_settings::read(path).map_err(|error| Error {
        file: path.to_owned(),
        line: 0,
        field: String::new(),
        reason: format!("cannot read: {error}"),
    })?;
    weir_settings::yaml(path, contents)
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
