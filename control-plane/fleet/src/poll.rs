// SPDX-License-Identifier: Apache-2.0
//! Polls: their source, and how they fail.

use std::fmt;

/// What a poll was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The metrics page.
    Scrape,
    /// The cache contents.
    Cache,
    /// The cache contents of an engine of language models, which it tells of its own accord.
    KvEvents,
    /// Which hosts a cluster has.
    Consul,
    /// The trust domain that they are in.
    ConsulRoots,
    /// Which hosts a cluster has, by a name's records.
    Dns,
    /// Which hosts a cluster has, by a service's endpoints.
    Kubernetes,
    /// A Prometheus server, asked for a whole cluster.
    Prometheus,
}

impl Source {
    /// Every source.
    pub const ALL: [Self; 8] = weir_policy::every![
        Scrape,
        Cache,
        KvEvents,
        Consul,
        ConsulRoots,
        Dns,
        Kubernetes,
        Prometheus
    ];

    /// Its name in metrics and `/tables`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scrape => "scrape",
            Self::Cache => "cache",
            Self::KvEvents => "kv_events",
            Self::Consul => "consul",
            Self::ConsulRoots => "consul_roots",
            Self::Dns => "dns",
            Self::Kubernetes => "kubernetes",
            Self::Prometheus => "prometheus",
        }
    }
}

/// What kind of failure a poll met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Nobody listens, or the connection was reset: the only fault that may mean a dead host.
    Refused,
    /// No complete answer in time.
    TimedOut,
    /// The body is over the limit.
    TooLarge,
    /// Whoever asks may not know.
    Denied,
    /// Not 200.
    BadStatus,
    /// Not what was asked for.
    BadBody,
    /// Contradicts what the host said before or was asked.
    Inconsistent,
    /// The host would hold more keys than it may.
    TooManyKeys,
    /// Anything else on the way.
    Failed,
}

impl Fault {
    /// Its name in metrics and `/tables`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::TooLarge => "too_large",
            Self::Denied => "denied",
            Self::BadStatus => "bad_status",
            Self::BadBody => "bad_body",
            Self::Inconsistent => "inconsistent",
            Self::TooManyKeys => "too_many_keys",
            Self::Failed => "failed",
        }
    }
}

/// Characters of an error's detail.
const MOST_SHOWN: usize = 600;

/// Why a poll brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", fault.as_str())]
pub struct PollError {
    /// The kind.
    pub fault: Fault,
    /// The rest.
    pub detail: String,
}

impl PollError {
    /// An error of this kind, as one line of bounded length: texts that others gave may be in it.
    pub fn new(fault: Fault, detail: impl fmt::Display) -> Self {
        let detail = detail.to_string();
        let shown = detail.chars().take(MOST_SHOWN);
        Self {
            fault,
            detail: shown
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect(),
        }
    }
}
