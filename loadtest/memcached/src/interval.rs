// SPDX-License-Identifier: Apache-2.0
//! What was seen of the requests that were due in one interval.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::schedule::Step;

/// Longer ones count as this: 100 s.
const LONGEST_US: u64 = 100_000_000;
/// Of percentiles: three digits, and 1 µs up to 2 ms.
const DIGITS: u8 = 3;

/// Counts of requests, and how long they took. Fills as answers come.
#[derive(Debug)]
pub struct Interval {
    number: u64,
    step: Step,
    counts: Counts,
    in_flight_max: u64,
    /// Made when needed, so that a stalled server's intervals take little memory.
    latency: Option<Histogram<u64>>,
    late: Option<Histogram<u64>>,
}

/// Counts of requests.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// The schedule asked for so many.
    pub due: u64,
    /// With values that were right, or none for keys that were not there.
    pub answered: u64,
    /// Refused, answered with a wrong value, lost with a connection, or never answered.
    pub errors: u64,
    /// Not sent, because too many were in flight.
    pub dropped: u64,
    /// Keys, not requests, that were not there.
    pub misses: u64,
}

/// Percentiles of all requests that were due; one that was not answered ranks behind every other,
/// and a percentile that falls on such a one is none. Microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Latency {
    /// Half of the requests were answered within it.
    pub p50_us: Option<u64>,
    /// 95 of 100.
    pub p95_us: Option<u64>,
    /// 99 of 100.
    pub p99_us: Option<u64>,
    /// The slowest answer.
    pub max_us: Option<u64>,
}

/// An interval, told.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Figures {
    /// From 0.
    pub interval: u64,
    /// From the load's start.
    pub start_s: f64,
    /// How long it was.
    pub length_s: f64,
    /// Requests a second: what was drawn,
    pub target_qps: f64,
    /// and what was answered of the requests that were due here.
    pub achieved_qps: f64,
    /// Requests.
    #[serde(flatten)]
    pub counts: Counts,
    /// From when they were due.
    #[serde(flatten)]
    pub latency: Latency,
    /// How much later than due the client itself sent 95 of 100 of those it sent: high where it is
    /// short of processor.
    pub client_late_p95_us: Option<u64>,
    /// The most requests at once without their answer.
    pub in_flight_max: u64,
    /// Whether fewer than 95 of 100 were answered within the limit.
    pub violated: bool,
}

impl Interval {
    /// An interval that begins.
    #[must_use]
    pub fn new(number: u64, step: Step) -> Self {
        Self {
            number,
            step,
            counts: Counts::default(),
            in_flight_max: 0,
            latency: None,
            late: None,
        }
    }

    /// A request was sent, so much later than it was due; with it, so many are in flight.
    pub fn sent(&mut self, late_ns: u64, in_flight: u64) {
        self.counts.due += 1;
        self.in_flight_max = self.in_flight_max.max(in_flight);
        record(&mut self.late, late_ns);
    }

    /// A request was due and not sent, as so many are in flight.
    pub fn dropped(&mut self, in_flight: u64) {
        self.in_flight_max = self.in_flight_max.max(in_flight);
        self.counts.due += 1;
        self.counts.dropped += 1;
    }

    /// An answer, so long after it was due.
    pub fn answered(&mut self, latency_ns: u64, misses: u32) {
        self.counts.answered += 1;
        self.counts.misses += u64::from(misses);
        record(&mut self.latency, latency_ns);
    }

    /// A request that was sent will have no good answer.
    pub fn failed(&mut self) {
        self.counts.errors += 1;
    }

    /// Whether nothing more can come, `now_ns` after the start.
    #[must_use]
    pub fn is_over(&self, now_ns: u64) -> bool {
        let Counts {
            due,
            answered,
            errors,
            dropped,
            ..
        } = self.counts;
        now_ns >= self.step.end_ns && due == answered + errors + dropped
    }

    /// What was seen, and whether it violates a limit of so many microseconds.
    #[must_use]
    pub fn figures(&self, limit_us: u64) -> Figures {
        let length_s = (self.step.end_ns - self.step.start_ns) as f64 / 1e9;
        let latency = Latency::of(self.latency.as_ref(), self.counts.due);
        Figures {
            interval: self.number,
            start_s: self.step.start_ns as f64 / 1e9,
            length_s,
            target_qps: self.step.rate,
            achieved_qps: self.counts.answered as f64 / length_s,
            counts: self.counts,
            latency,
            client_late_p95_us: self.late.as_ref().map(|late| late.value_at_quantile(0.95)),
            in_flight_max: self.in_flight_max,
            violated: self.counts.due > 0 && latency.p95_us.is_none_or(|p95| p95 > limit_us),
        }
    }

    /// The answers' latencies in microseconds, if any came.
    #[must_use]
    pub fn latency(&self) -> Option<&Histogram<u64>> {
        self.latency.as_ref()
    }
}

impl Latency {
    /// Of the answers to some of the requests that were due.
    pub(crate) fn of(answers: Option<&Histogram<u64>>, due: u64) -> Self {
        let Some(answers) = answers.filter(|answers| !answers.is_empty()) else {
            return Self::default();
        };
        let answered = answers.len();
        let at = |share: f64| {
            let rank = ((due as f64 * share).ceil() as u64).max(1);
            // Half a rank less, as the library rounds up again.
            let among_answers = (rank as f64 - 0.5) / answered as f64;
            (rank <= answered).then(|| answers.value_at_quantile(among_answers))
        };
        Self {
            p50_us: at(0.50),
            p95_us: at(0.95),
            p99_us: at(0.99),
            max_us: Some(answers.max()),
        }
    }
}

/// An empty histogram of microseconds.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, DIGITS).expect("the bounds are those of a histogram")
}

fn record(into: &mut Option<Histogram<u64>>, ns: u64) {
    // Rounded up: nothing takes no time.
    into.get_or_insert_with(histogram)
        .saturating_record(ns.div_ceil(1_000));
}

#[cfg(test)]
mod tests;
