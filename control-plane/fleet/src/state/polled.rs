// SPDX-License-Identifier: Apache-2.0
//! Polls of hosts, and answers of discovery.

use std::time::Duration;

use weir_policy::Serves;

use super::State;
use crate::cluster::Cluster;
use crate::event::Event;
use crate::figures::Scraped;
use crate::holdings::Changes;
use crate::observed::{self, Observed};
use crate::page_cores;
use crate::poll::{Fault, PollError, Source};

impl State {
    pub(super) fn scraped(
        &mut self,
        cluster: &str,
        host: &str,
        asked: Duration,
        now: Duration,
        result: Result<Scraped, PollError>,
    ) {
        let outcome = result
            .as_ref()
            .map(|news| news.complaints.clone())
            .map_err(Clone::clone);
        let Some(cluster) = self.polled(cluster, host, Source::Scrape, now, outcome) else {
            return;
        };
        if let (Ok(news), Some(host)) = (result, cluster.hosts.get_mut(host)) {
            let observed = Observed {
                figures: news.figures,
                at: asked,
                delay_at: asked,
                from: observed::From::Scrape,
            };
            let keep = cluster.config.policy.stale_after;
            if let Some((jobs, within)) = news.left_queue {
                host.level.counted(jobs, within, asked);
            }
            let serves = cluster.config.policy.serves;
            if serves == Serves::Prompts {
                if let Some(read) = news.read {
                    cluster.costs.read(read);
                }
                if let Some(wrote) = news.wrote {
                    cluster.costs.wrote(wrote);
                }
                host.under_way.has_read(&observed.figures, asked);
            }
            let names_other_cores = host.page_cores.says(news.millicores);
            cluster.has_newer_figures |= host.observe(observed, keep) | names_other_cores;
            cluster.changed |= host.draining != news.draining;
            host.draining = news.draining;
            if names_other_cores {
                page_cores::bound(cluster.hosts.values_mut());
            }
        }
    }

    pub(super) fn cached(
        &mut self,
        cluster: &str,
        host: &str,
        drops: u64,
        now: Duration,
        result: Result<Changes, PollError>,
    ) {
        let contents = self.budget.contents(cluster);
        // Changes to what was dropped meanwhile are changes to nothing.
        let is_kept = !contents.dropped && contents.drops == drops;
        let outcome = result.and_then(|changes| match is_kept {
            true => self.hold(cluster, host, &changes),
            false => Ok(()),
        });
        let outcome = outcome.map(|()| Vec::new());
        let known = self.clusters.get(cluster);
        let source = known.and_then(|known| known.config.contents_source());
        self.polled(cluster, host, source.unwrap_or(Source::Cache), now, outcome);
        self.grew(cluster, now);
    }

    /// Folds in what a host says of its cache; nothing where it is no longer configured.
    fn hold(&mut self, cluster: &str, host: &str, changes: &Changes) -> Result<(), PollError> {
        let Some(cluster) = self.clusters.get_mut(cluster) else {
            return Ok(());
        };
        let Some(known) = cluster.hosts.get_mut(host) else {
            return Ok(());
        };
        // It may have left and come back since it was asked for all.
        if !changes.reset && !known.has_told_contents {
            self.events.push(Event::ContentsRefused);
            return Ok(());
        }
        let cache = cluster.config.cache.as_ref();
        let limit = cache.map_or(usize::MAX, |cache| cache.max_keys);
        let kept = cluster.holdings.apply(known.id, changes, limit);
        known.has_told_contents = kept.is_ok();
        kept.map_err(|keys| {
            self.events.push(Event::ContentsRefused);
            let detail = format!("{host} holds {keys} keys, the limit is {limit}: none is kept");
            PollError::new(Fault::TooManyKeys, detail)
        })
    }

    /// Notes how a poll went; none where the host is no longer configured.
    fn polled(
        &mut self,
        name: &str,
        host: &str,
        source: Source,
        now: Duration,
        outcome: Result<Vec<String>, PollError>,
    ) -> Option<&mut Cluster> {
        self.events.push(polled(source, outcome.as_ref().err()));
        let cluster = self.clusters.get_mut(name)?;
        let entry = cluster.hosts.get_mut(host)?;
        let was_dead = entry.is_dead();
        let is_news = match &outcome {
            Ok(complaints) => entry.succeeded(source, now, complaints.clone()),
            Err(error) => entry.failed(source, now, error.clone()),
        };
        let is_dead = entry.is_dead();
        let id = entry.id;
        if is_news {
            self.events.push(Event::PollsChanged {
                cluster: name.to_owned(),
                host: host.to_owned(),
                source,
                outcome,
            });
        }
        if is_dead != was_dead {
            cluster.changed = true;
            // Whoever comes back begins with an empty cache, and perhaps on another machine.
            cluster.costs.remove(id);
            self.events.push(Event::DeadHosts {
                cluster: name.to_owned(),
                host: host.to_owned(),
                dead: cluster.dead(),
                health_ignored: cluster.health_ignored(),
            });
        }
        Some(cluster)
    }

    /// Notes how discovery goes.
    pub(super) fn discovery_answered(
        &mut self,
        name: &str,
        source: Source,
        now: Duration,
        result: Result<Vec<String>, PollError>,
    ) {
        self.events.push(polled(source, result.as_ref().err()));
        let Some(cluster) = self.clusters.get_mut(name) else {
            return;
        };
        let polls = cluster.polls.entry(source).or_default();
        let is_news = match &result {
            Ok(complaints) => polls.succeeded(now, complaints.clone()),
            Err(error) => {
                let before = polls.error();
                polls.failed(now, error.clone()) || before != Some(error.to_string())
            }
        };
        if is_news {
            self.events.push(Event::DiscoveryChanged {
                cluster: name.to_owned(),
                source,
                outcome: result,
            });
        }
    }

    pub(super) fn discovery_waits(&mut self, name: &str, complaint: String) {
        if let Some(known) = self.clusters.get_mut(name)
            && let Some(registry) = &known.config.registry
        {
            let polls = known.polls.entry(registry.source()).or_default();
            polls.complaints = vec![complaint.clone()];
            self.events.push(Event::DiscoveryWaits {
                cluster: name.to_owned(),
                complaint,
            });
        }
    }
}

pub(super) fn polled(source: Source, error: Option<&PollError>) -> Event {
    let result = error.map_or("ok", |error| error.fault.as_str());
    Event::Polled { source, result }
}
