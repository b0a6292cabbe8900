// SPDX-License-Identifier: Apache-2.0
//! What Prometheus says of hosts.

use std::time::Duration;

use tracing::info;

use super::State;
use super::host::{self, Observed};
use crate::sources::prometheus::{Answers, Load, Names, gather};
use crate::sources::{Fault, Source};

impl State {
    /// Takes in a round of queries that began at `asked`.
    pub(super) fn queried(
        &mut self,
        name: &str,
        asked: Duration,
        answers: &Answers,
        now: Duration,
    ) {
        for answer in answers.values() {
            let fault = answer.as_ref().err().map(|error| error.fault);
            let result = fault.map_or("ok", Fault::as_str);
            self.metrics.polls(Source::Prometheus.as_str(), result);
        }
        let Some(cluster) = self.clusters.get_mut(name) else {
            return;
        };
        // The round may have begun under a configuration that has gone.
        let Some(settings) = &cluster.config.prometheus else {
            return;
        };
        let hosts = || cluster.hosts.values().map(|host| &host.config);
        let addresses = hosts().map(|host| host.address.as_str());
        let round = gather(answers, &settings.label, &Names::of(hosts()), addresses);
        cluster.unknown_series = round.unknown_series;
        let polls = cluster.polls.entry(Source::Prometheus).or_default();
        let failed = answers.values().map(|answer| answer.as_ref().err());
        let failed: Option<Vec<_>> = failed.collect();
        let news = match failed.as_deref() {
            // Every query, so it is not about any of them.
            Some([error, ..]) => polls.failed(now, (*error).clone()),
            _ => polls.succeeded(now, round.complaints),
        };
        if news {
            let (error, complaints) = (polls.error(), &polls.complaints);
            info!(cluster = name, error, ?complaints, "Prometheus");
        }
        for (address, told) in round.hosts {
            let Some(host) = cluster.hosts.get_mut(&address) else {
                continue;
            };
            let taken = told.load.is_some();
            if host.told(Source::Prometheus, now, taken, told.complaints) {
                let complaints = &host.polls[&Source::Prometheus].complaints;
                info!(cluster = name, host = address, ?complaints, "Prometheus");
            }
            // Before this process began its clock does not reach: figures so old wait until newer ones are read.
            if let Some(load) = told.load
                && let Some(at) = asked.checked_sub(load.age)
            {
                cluster.changed |= take(host, load, at, cluster.config.policy.stale_after);
            }
        }
    }
}

/// Whether the table changes.
fn take(host: &mut host::Host, load: Load, at: Duration, keep: Duration) -> bool {
    let observed = Observed {
        figures: load.figures,
        at,
        delay_at: at,
        from: host::From::Prometheus,
    };
    if !host.observe(observed, keep) {
        return false;
    }
    host.draining = load.draining.unwrap_or(host.draining);
    true
}

#[cfg(test)]
mod tests;
