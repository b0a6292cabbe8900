// SPDX-License-Identifier: Apache-2.0
//! The figures of tables 4 to 7 of document 001, of a simulation.

use std::time::Duration;

use hdrhistogram::Histogram;
use weir_executor::Source;
use weir_replay::record::Outcome;

use crate::Ended;
use crate::document001::history::{Change, History};
use crate::document001::published::{Row, Rows};
use crate::workload::HIGH;

/// Three significant digits.
const DIGITS: u8 = 3;

/// Times, the mean exact and percentiles to 0.1 %.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    histogram: Histogram<u64>,
    sum_s: f64,
}

impl Times {
    pub(crate) fn new() -> Self {
        // Eleven days of microseconds. Three digits are always accepted.
        let histogram = Histogram::new_with_bounds(1, 1_000_000_000_000, DIGITS);
        Self {
            histogram: histogram.unwrap_or_else(|_| unreachable!("constant bounds")),
            sum_s: 0.0,
        }
    }

    pub(crate) fn add(&mut self, time: Duration) {
        self.sum_s += time.as_secs_f64();
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(micros);
    }

    pub(crate) fn row(&self) -> Row {
        let n = self.histogram.len().max(1) as f64;
        let at = |q| self.histogram.value_at_quantile(q) as f64 / 1e6;
        [
            self.sum_s / n,
            at(0.5),
            at(0.9),
            at(0.95),
            at(0.99),
            at(1.0),
        ]
    }
}

/// Number, sum and sum of squares.
#[derive(Debug, Clone, Copy, Default)]
struct Moments(f64, f64, f64);

impl Moments {
    fn add(&mut self, value: f64) {
        self.0 += 1.0;
        self.1 += value;
        self.2 += value * value;
    }

    fn variance(&self) -> f64 {
        let n = self.0.max(1.0);
        (self.2 / n - (self.1 / n).powi(2)).max(0.0)
    }
}

/// What document 001 measures: attempts that a server took, as it sees them.
#[derive(Debug, Clone)]
pub struct Tally {
    /// By priority, high first.
    durations: [Times; 2],
    waits: [Times; 2],
    slowdowns: [Times; 2],
    /// Of all requests, back-off and retries included.
    all_in: [Times; 2],
    /// Waits of priority low, of all servers and of each.
    variance: Moments,
    variances: Vec<Moments>,
    /// Requests.
    pub requests: u64,
    /// Those that did not end well.
    pub failed: u64,
    /// Attempts.
    pub attempts: u64,
    /// Attempts that were shed.
    pub shed: u64,
    /// Hosts that gave an attempt back.
    pub bounces: u64,
    /// Connections that no server took.
    pub unconnected: u64,
    /// Those of them that took too long.
    pub connect_timeouts: u64,
    /// Requests whose first connection was taken.
    pub first_connected: u64,
    /// Jobs that a server gave up.
    pub queue_timeouts: u64,
    /// Answers without a fetch.
    pub hits: u64,
    /// Answers.
    pub answers: u64,
    /// Seconds that rules were applied to all of them; several cores count once.
    pub ran_s: f64,
    /// Hours that the requests came.
    pub hours: f64,
    /// When servers were up, from the beginning.
    pub history: History,
}

impl Tally {
    /// Of nothing yet; of requests that come for so many hours.
    #[must_use]
    pub fn new(hosts: usize, hours: f64) -> Self {
        let times = || [Times::new(), Times::new()];
        Self {
            durations: times(),
            waits: times(),
            slowdowns: times(),
            all_in: times(),
            variance: Moments::default(),
            variances: vec![Moments::default(); hosts],
            requests: 0,
            failed: 0,
            attempts: 0,
            shed: 0,
            bounces: 0,
            unconnected: 0,
            connect_timeouts: 0,
            first_connected: 0,
            queue_timeouts: 0,
            hits: 0,
            answers: 0,
            ran_s: 0.0,
            hours,
            history: History::new(hosts),
        }
    }

    /// Adds a request; `queue_timeout` is how long a job has waited that its server gave up.
    pub fn add(&mut self, ended: &Ended, queue_timeout: Option<Duration>) {
        let class = usize::from(ended.class != HIGH);
        self.requests += 1;
        self.attempts += u64::from(ended.attempts);
        self.shed += u64::from(ended.shed_attempts);
        self.bounces += u64::from(ended.bounces);
        self.unconnected += u64::from(ended.unconnected);
        self.connect_timeouts += u64::from(ended.connect_timeouts);
        self.first_connected += u64::from(ended.unconnected == 0);
        self.queue_timeouts += ended.queue_timeouts.len() as u64;
        self.all_in[class].add(ended.duration);
        for host in &ended.queue_timeouts {
            let waited = queue_timeout.unwrap_or_default();
            self.taken(class, Some(*host), waited, waited);
        }
        if ended.outcome != Outcome::Ok {
            self.failed += 1;
            return;
        }
        self.answers += 1;
        let ran = ended.spent.as_ref().map(|spent| spent.run);
        self.ran_s += ran.unwrap_or_default().as_secs_f64();
        let source = ended.spent.as_ref().map(|spent| spent.source);
        self.hits += u64::from(source == Some(Source::Hit));
        self.taken(class, ended.host, ended.attempt, ended.first_wait);
    }

    fn taken(&mut self, class: usize, host: Option<usize>, duration: Duration, wait: Duration) {
        self.durations[class].add(duration);
        self.waits[class].add(wait);
        // Of section 5.1, W / (W + E): E is the time from the first joblet to the answer.
        let slowdown = wait.as_secs_f64() / duration.as_secs_f64().max(1e-9);
        self.slowdowns[class].add(Duration::from_secs_f64(slowdown.min(1.0)));
        if class == 1 {
            self.variance.add(wait.as_secs_f64());
            if let Some(of) = host.and_then(|host| self.variances.get_mut(host)) {
                of.add(wait.as_secs_f64());
            }
        }
    }

    /// As tables 4 and 5 have it.
    #[must_use]
    pub fn rows(&self) -> Rows {
        Rows {
            high_duration: self.durations[0].row(),
            low_duration: self.durations[1].row(),
            high_wait: self.waits[0].row(),
            low_wait: self.waits[1].row(),
        }
    }

    /// All-in durations, high and low.
    #[must_use]
    pub fn all_in(&self) -> [Row; 2] {
        [self.all_in[0].row(), self.all_in[1].row()]
    }

    /// Table 7: slowdowns, high and low.
    #[must_use]
    pub fn slowdowns(&self) -> [Row; 2] {
        [self.slowdowns[0].row(), self.slowdowns[1].row()]
    }

    /// Table 6: the variance of low waits, of all servers and of each.
    #[must_use]
    pub fn variances(&self) -> (f64, Vec<f64>) {
        let each = self.variances.iter().map(Moments::variance);
        (self.variance.variance(), each.collect())
    }

    /// Jobs to which rules are applied on the mean server.
    #[must_use]
    pub fn running(&self) -> f64 {
        self.ran_s / (self.hours * 3600.0) / self.variances.len().max(1) as f64
    }

    /// The part of the time that the mean server was as asked for.
    #[must_use]
    pub fn time(&self, wanted: impl Fn(&Change) -> bool) -> f64 {
        let hosts = self.history.hosts().len();
        let ends = Duration::from_secs_f64(self.hours * 3600.0);
        let share = |host| self.history.share(host, Duration::ZERO, ends, &wanted);
        (0..hosts).map(share).sum::<f64>() / hosts.max(1) as f64
    }

    /// A part of the requests.
    #[must_use]
    pub fn share(&self, part: u64) -> f64 {
        part as f64 / self.requests.max(1) as f64
    }
}
