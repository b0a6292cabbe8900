// SPDX-License-Identifier: Apache-2.0
//! Rounds of queries to Prometheus.

use std::time::Duration;

use super::State;
use super::polled::polled;
use crate::event::Event;
use crate::host::Host;
use crate::observed::{self, Observed};
use crate::poll::Source;
use crate::prometheus::{Answers, Load, Names, gather};

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
            self.events
                .push(polled(Source::Prometheus, answer.as_ref().err()));
        }
        let Some(cluster) = self.clusters.get_mut(name) else {
            return;
        };
        // The round may have begun under settings that have gone.
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
        let is_news = match failed.as_deref() {
            // Every query, so it is not about any of them.
            Some([error, ..]) => polls.failed(now, (*error).clone()),
            _ => polls.succeeded(now, round.complaints),
        };
        if is_news {
            self.events.push(Event::PrometheusChanged {
                cluster: name.to_owned(),
                host: None,
                error: polls.error(),
                complaints: polls.complaints.clone(),
            });
        }
        for (address, told) in round.hosts {
            let Some(host) = cluster.hosts.get_mut(&address) else {
                continue;
            };
            let taken = told.load.is_some();
            if host.told(Source::Prometheus, now, taken, told.complaints.clone()) {
                self.events.push(Event::PrometheusChanged {
                    cluster: name.to_owned(),
                    host: Some(address),
                    error: None,
                    complaints: told.complaints,
                });
            }
            // Before this process began its clock does not reach: figures so old wait until newer ones are read.
            if let Some(load) = told.load
                && let Some(at) = asked.checked_sub(load.age)
            {
                let was_draining = host.draining;
                cluster.has_newer_figures |=
                    take(host, load, at, cluster.config.policy.stale_after);
                cluster.changed |= host.draining != was_draining;
            }
        }
    }
}

/// Whether they are newer.
fn take(host: &mut Host, load: Load, at: Duration, keep: Duration) -> bool {
    let observed = Observed {
        figures: load.figures,
        at,
        delay_at: at,
        from: observed::From::Prometheus,
    };
    let is_newer = host.observe(observed, keep);
    if is_newer {
        host.draining = load.draining.unwrap_or(host.draining);
    }
    is_newer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    #[test]
    fn an_older_word_on_draining_is_not_taken() {
        let mut host = crate::host::tests::host();
        let mut told = |draining, second| {
            let load = Load {
                figures: Figures::default(),
                draining: Some(draining),
                age: Duration::ZERO,
            };
            let at = Duration::from_secs(second);
            (take(&mut host, load, at, Duration::MAX), host.draining)
        };
        assert_eq!(told(true, 2), (true, true));
        assert_eq!(told(false, 1), (false, true));
        assert_eq!(told(false, 3), (true, false));
    }
}
