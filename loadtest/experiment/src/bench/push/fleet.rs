// SPDX-License-Identifier: Apache-2.0
//! Many hosts in this process, each on a port of its own, whose load changes by the clock.
//!
//! The figure of jobs in progress is the number of the change, so that whoever is told of it can
//! be asked when it was so and when it was first read.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

use super::page::{Figures, page};

/// Between two changes of a host.
pub(super) const EVERY: Duration = Duration::from_secs(1);

/// Hosts that change at their own moments of each second.
pub(super) struct Fleet {
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) history: Arc<History>,
}

/// When what was so.
pub(super) struct History {
    started: Instant,
    hosts: HashMap<String, Host>,
}

struct Host {
    phase: Duration,
    /// By number of the change.
    first_read: Mutex<Vec<Instant>>,
}

/// How old news is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Age {
    /// Since the host changed.
    pub(super) changed: Duration,
    /// Since its page was first read with it.
    pub(super) read: Duration,
}

impl Fleet {
    pub(super) async fn start(hosts: u32) -> Result<Self> {
        let mut listeners = Vec::new();
        for _ in 0..hosts {
            listeners.push(TcpListener::bind("127.0.0.1:0").await?);
        }
        let addresses: Vec<SocketAddr> = listeners
            .iter()
            .map(TcpListener::local_addr)
            .collect::<Result<_, _>>()?;
        // Spread, and not in the order of addresses, which is that of the polls' first round.
        let phase = |n: usize| EVERY * (n as u32 * 73 % hosts) / hosts;
        let host = |(n, address): (usize, &SocketAddr)| {
            let (phase, first_read) = (phase(n), Mutex::default());
            (address.to_string(), Host { phase, first_read })
        };
        let history = Arc::new(History {
            started: Instant::now(),
            hosts: addresses.iter().enumerate().map(host).collect(),
        });
        for (listener, address) in listeners.into_iter().zip(&addresses) {
            let (history, name) = (history.clone(), address.to_string());
            let answer = async move || history.read(&name, Instant::now());
            let router = Router::new().route("/metrics", get(answer));
            // Ends with the runtime.
            tokio::spawn(async { axum::serve(listener, router).await });
        }
        Ok(Self { addresses, history })
    }
}

impl History {
    fn read(&self, host: &str, now: Instant) -> String {
        let change = self.hosts.get(host).map_or(0, |host| {
            let change = self.change(host, now);
            let mut first = host
                .first_read
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            // A change that nobody has read in its time is read with the next.
            let known = first.len().max(change as usize + 1);
            first.resize(known, now);
            change
        });
        page(Figures {
            in_progress: change,
            waited: change,
            ..Figures::default()
        })
    }

    /// The number of the last change by then.
    fn change(&self, host: &Host, at: Instant) -> u32 {
        let since = at.saturating_duration_since(self.started + host.phase);
        (since.as_nanos() / EVERY.as_nanos()) as u32
    }

    /// How old this change of a host is; none of a change that has not been.
    pub(super) fn age(&self, host: &str, change: u32, now: Instant) -> Option<Age> {
        let host = self.hosts.get(host)?;
        let first = host
            .first_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let read = *first.get(change as usize)?;
        Some(Age {
            changed: now.saturating_duration_since(self.started + host.phase + EVERY * change),
            read: now.saturating_duration_since(read),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_as_old_as_its_moment_and_its_first_reading_say() {
        let started = Instant::now();
        let host = Host {
            phase: Duration::from_millis(300),
            first_read: Mutex::default(),
        };
        let history = History {
            started,
            hosts: [("a".to_owned(), host)].into(),
        };
        let at = |ms| started + Duration::from_millis(ms);
        assert!(history.read("a", at(2400)).contains("in_progress 2\n"));
        assert!(history.read("a", at(2900)).contains("in_progress 2\n"));
        let age = history.age("a", 2, at(3000)).unwrap();
        assert_eq!(age.changed, Duration::from_millis(700));
        assert_eq!(age.read, Duration::from_millis(600));
        assert_eq!(history.age("a", 3, at(9000)), None);
        assert_eq!(history.age("b", 0, at(9000)), None);
    }
}
