// SPDX-License-Identifier: Apache-2.0
//! How DNS is asked for a cluster's hosts.

use std::net::SocketAddr;
use std::time::Duration;

/// How DNS is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dns {
    /// Whose addresses the hosts have.
    pub name: String,
    /// Of every host. Absent: `name` has service records (RFC 2782), which tell ports.
    pub port: Option<u16>,
    /// Where a host tells its metrics. Absent: where it takes requests.
    pub metrics_port: Option<u16>,
    /// Absent: those that the system asks.
    pub server: Option<SocketAddr>,
    /// Between two questions.
    pub interval: Duration,
    /// Of one question, with all that follow from it.
    pub timeout: Duration,
}

impl Dns {
    /// Whether the same hosts would be found, however often they are asked for.
    pub fn finds_the_same(&self, other: &Self) -> bool {
        let theirs = Self {
            interval: self.interval,
            timeout: self.timeout,
            ..other.clone()
        };
        *self == theirs
    }
}
