// SPDX-License-Identifier: Apache-2.0
//! One host, as far as it is known.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_policy::{HostId, Policy, Selection};

use crate::levels::HostLevel;
use crate::node::Node;
use crate::observed::{From, Observed};
use crate::page_cores::PageCores;
use crate::poll::{Fault, PollError, Source};
use crate::prometheus::Figure;
use crate::settings;
use crate::under_way::UnderWay;

/// So many refused connections in a row mean that a host is down.
const REFUSALS: u32 = 2;

/// How the polls of one source go.
#[derive(Clone, Debug, Default)]
pub struct Polls {
    /// When the last good answer came.
    pub succeeded: Option<Duration>,
    /// Why the last poll failed, and since when polls fail.
    pub failing: Option<(PollError, Duration)>,
    /// Connections refused in a row.
    pub refused: u32,
    /// Complaints of a good answer: parts that it should have had.
    pub complaints: Vec<String>,
}

impl Polls {
    /// A poll succeeded. True if that ends a run of failures, or if it has other complaints.
    pub fn succeeded(&mut self, now: Duration, complaints: Vec<String>) -> bool {
        self.succeeded = Some(now);
        self.failing.take().is_some() | self.complains(complaints)
    }

    /// A poll failed. True if it failed in another way than the one before.
    pub fn failed(&mut self, now: Duration, error: PollError) -> bool {
        // A time-out says nothing: neither that the host is there nor that it is not.
        if error.fault == Fault::Refused {
            self.refused += 1;
        }
        let (news, since) = match &self.failing {
            Some((old, since)) => (old.fault != error.fault, *since),
            None => (true, now),
        };
        self.failing = Some((error, since));
        news
    }

    /// True if it had other complaints before.
    fn complains(&mut self, complaints: Vec<String>) -> bool {
        let news = self.complaints != complaints;
        self.complaints = complaints;
        news
    }

    /// Why polls fail, while they do.
    pub fn error(&self) -> Option<String> {
        self.failing.as_ref().map(|(error, _)| error.to_string())
    }
}

/// One host.
#[derive(Debug)]
pub struct Host {
    /// As configured.
    pub config: settings::Host,
    /// Its identity.
    pub id: HostId,
    /// It said that it wants no new requests.
    pub draining: bool,
    /// Its newest own figures.
    pub observed: Option<Observed>,
    /// Requests of callers there.
    pub under_way: UnderWay,
    /// The source of those in the newest table.
    pub pushed_from: Option<From>,
    /// By source.
    pub polls: BTreeMap<Source, Polls>,
    /// Its admission level.
    pub level: HostLevel,
    /// The governor of its node: its words, and the answers to it.
    pub node: Node,
    /// Cores that its page names.
    pub page_cores: PageCores,
    /// It has told all of its cache, so that changes of it mean something.
    pub has_told_contents: bool,
}

impl Host {
    /// A host that has not been heard of.
    pub fn new(config: settings::Host) -> Self {
        let id = HostId::of(&config.address);
        Self {
            config,
            id,
            draining: false,
            observed: None,
            under_way: UnderWay::default(),
            pushed_from: None,
            polls: BTreeMap::new(),
            level: HostLevel::default(),
            node: Node::default(),
            page_cores: PageCores::default(),
            has_told_contents: false,
        }
    }

    /// The same host under new settings; what is known of it is kept.
    #[must_use]
    pub fn configured(mut self, host: settings::Host, cluster: &settings::Cluster) -> Self {
        let asked = cluster.prometheus.as_ref();
        let asked = asked.is_some_and(|asked| asked.queries.contains_key(&Figure::Draining));
        self.polls.retain(|source, _| cluster.asks(*source));
        if cluster.scrape.is_none() && !asked {
            // Nobody would ever say that it is over.
            self.draining = false;
        }
        if cluster.scrape.is_none() {
            self.page_cores = PageCores::default();
        }
        self.config = host;
        self
    }

    /// Takes the host's own figures unless newer ones are known. A queuing delay that they lack is kept for so long:
    /// sources do not all tell one, and by turns it would be known and unknown.
    pub fn observe(&mut self, news: Observed, keep: Duration) -> bool {
        self.level.hear(0, &news);
        self.take(news, keep)
    }

    /// The same of figures that a proxy reports; `proxy` is a hash of its name.
    pub fn reported(&mut self, proxy: u64, news: Observed, keep: Duration) -> bool {
        self.level.hear(proxy, &news);
        self.take(news, keep)
    }

    fn take(&mut self, mut news: Observed, keep: Duration) -> bool {
        if let Some(old) = &self.observed {
            if old.at > news.at {
                return false;
            }
            if news.figures.queuing_delay.is_none()
                && let Some(delay) = old.figures.queuing_delay
                && news.at.saturating_sub(old.delay_at) <= keep
            {
                news.figures.queuing_delay = Some(delay);
                news.figures.delay_is_late = old.figures.delay_is_late;
                news.delay_at = old.delay_at;
            }
        }
        self.under_way.told(&news.figures, self.cores(), news.at);
        self.observed = Some(news);
        true
    }

    /// A poll succeeded. True if that ends a run of failures.
    pub fn succeeded(&mut self, source: Source, now: Duration, complaints: Vec<String>) -> bool {
        self.polls.values_mut().for_each(|polls| polls.refused = 0);
        let polls = self.polls.entry(source).or_default();
        polls.succeeded(now, complaints)
    }

    /// Somebody else told of it, which does not mean that it can be reached. True if there are other complaints.
    pub fn told(
        &mut self,
        source: Source,
        now: Duration,
        taken: bool,
        complaints: Vec<String>,
    ) -> bool {
        let polls = self.polls.entry(source).or_default();
        if taken {
            polls.succeeded = Some(now);
        }
        polls.complains(complaints)
    }

    /// A poll failed. True if it failed in another way than the one before.
    pub fn failed(&mut self, source: Source, now: Duration, error: PollError) -> bool {
        self.polls.entry(source).or_default().failed(now, error)
    }

    /// Whether it refuses connections.
    pub fn is_dead(&self) -> bool {
        self.polls.values().any(|polls| polls.refused >= REFUSALS)
    }

    /// Thousandths of a core: what its node says, else what is configured, else what its page names; 0 where unknown.
    pub fn capacity_millicores(&self) -> u32 {
        self.node.capacity(self.lasting_millicores())
    }

    /// The same without what its node says.
    pub fn lasting_millicores(&self) -> u32 {
        match self.config.capacity_millicores {
            0 => self.page_cores.millicores(),
            configured => configured,
        }
    }

    /// Who told its capacity.
    pub fn capacity_from(&self) -> &'static str {
        match (self.node.said(), self.config.capacity_millicores) {
            (Some(_), _) => "node",
            (None, 0) if self.page_cores.millicores() > 0 => "page",
            (None, _) => "configuration",
        }
    }

    /// Whole cores; 0 where unknown.
    fn cores(&self) -> u32 {
        self.capacity_millicores() / 1000
    }

    /// The newest that is known of its load. What callers have under way counts for `estimate` alone, which keeps account
    /// of each request: others count what they sent since the figures, and would count it twice.
    pub fn newest(&self, policy: &Policy, now: Duration) -> Option<Observed> {
        if policy.selection != Selection::Estimate {
            return self.observed.clone();
        }
        let is_believed = |own: &&Observed| now.saturating_sub(own.at) <= policy.stale_after;
        let own = self.observed.as_ref().filter(is_believed);
        let newest = self.under_way.newest(own, self.cores(), now);
        newest.or_else(|| self.observed.clone())
    }

    /// The age of its own figures.
    pub fn age(&self, now: Duration) -> Option<Duration> {
        self.observed
            .as_ref()
            .map(|observed| now.saturating_sub(observed.at))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::figures::Figures;

    pub(crate) fn host() -> Host {
        let address = "127.0.0.1:1".to_owned();
        let config = settings::Host {
            metrics_address: address.clone(),
            cache_address: address.clone(),
            address,
            capacity_millicores: 0,
            preempt_at_unix_ms: 0,
            zone: None,
            draining: false,
            written: None,
            instance: None,
        };
        Host::new(config)
    }

    fn fail(host: &mut Host, source: Source, fault: Fault) {
        host.failed(source, Duration::ZERO, PollError::new(fault, "x"));
    }

    #[test]
    fn two_refusals_in_a_row_mean_down_until_a_poll_succeeds() {
        let mut host = host();
        fail(&mut host, Source::Scrape, Fault::Refused);
        fail(&mut host, Source::Cache, Fault::Refused);
        assert!(!host.is_dead(), "one a source");
        fail(&mut host, Source::Scrape, Fault::Refused);
        assert!(host.is_dead());
        host.succeeded(Source::Cache, Duration::ZERO, vec![]);
        assert!(!host.is_dead());
    }

    #[test]
    fn time_outs_and_bad_answers_never_mean_down() {
        let mut host = host();
        for fault in [
            Fault::TimedOut,
            Fault::BadStatus,
            Fault::BadBody,
            Fault::TooLarge,
            Fault::Inconsistent,
            Fault::Failed,
        ] {
            for _ in 0..5 {
                fail(&mut host, Source::Scrape, fault);
            }
            assert!(!host.is_dead(), "{fault:?}");
        }
    }

    #[test]
    fn only_a_change_of_the_kind_of_failure_is_news() {
        let mut host = host();
        let error = |fault| PollError::new(fault, "x");
        assert!(host.failed(Source::Scrape, Duration::ZERO, error(Fault::TimedOut)));
        assert!(!host.failed(Source::Scrape, Duration::ZERO, error(Fault::TimedOut)));
        assert!(host.failed(Source::Scrape, Duration::ZERO, error(Fault::Refused)));
        assert!(host.succeeded(Source::Scrape, Duration::ZERO, vec![]));
        assert!(!host.succeeded(Source::Scrape, Duration::ZERO, vec![]));
    }

    #[test]
    fn newer_figures_win_wherever_they_come_from() {
        let mut host = host();
        let observed = |ms, jobs, from| Observed {
            figures: Figures {
                in_progress: Some(jobs),
                ..Figures::default()
            },
            at: Duration::from_millis(ms),
            delay_at: Duration::from_millis(ms),
            from,
        };
        let keep = Duration::ZERO;
        assert!(host.observe(observed(10, 1, From::Scrape), keep));
        assert!(host.observe(observed(20, 2, From::Report), keep));
        assert!(!host.observe(observed(15, 3, From::Scrape), keep));
        assert!(!host.observe(observed(19, 4, From::Prometheus), keep));
        let newest = host.observed.as_ref().unwrap();
        assert_eq!(
            (newest.figures.in_progress, newest.from),
            (Some(2), From::Report)
        );
        assert!(host.observe(observed(21, 5, From::Prometheus), keep));
        assert_eq!(host.observed.unwrap().from, From::Prometheus);
    }

    #[test]
    fn a_delay_that_newer_figures_lack_is_kept_for_a_while_whoever_told_it() {
        let all = [From::Scrape, From::Report, From::Prometheus];
        let pairs = all.map(|first| all.map(|second| (first, second)));
        for (first, second) in pairs.into_iter().flatten() {
            let mut host = host();
            let observed = |s, delay: Option<u64>, from| Observed {
                figures: Figures {
                    queuing_delay: delay.map(Duration::from_secs),
                    ..Figures::default()
                },
                at: Duration::from_secs(s),
                delay_at: Duration::from_secs(s),
                from,
            };
            let keep = Duration::from_secs(5);
            host.observe(observed(10, Some(3), first), keep);
            for (at, delay) in [(11, Some(3)), (15, Some(3)), (16, None), (17, None)] {
                host.observe(observed(at, None, second), keep);
                let observed = host.observed.as_ref().unwrap();
                let delay = delay.map(Duration::from_secs);
                assert_eq!(
                    observed.figures.queuing_delay, delay,
                    "{first:?} {second:?} {at}"
                );
                assert_eq!(observed.at, Duration::from_secs(at));
                let told = delay.map_or(at, |_| 10);
                assert_eq!(observed.delay_at, Duration::from_secs(told));
            }
        }
    }
}
