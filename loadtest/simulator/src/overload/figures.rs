// SPDX-License-Identifier: Apache-2.0
//! What came of a case.

use std::ops::Range;
use std::time::Duration;

use weir_replay::record::Outcome;

use super::Case;
use crate::Ended;
use crate::workload::HIGH;

/// Goodput below this share of capacity is not settled.
const SETTLED: f64 = 0.95;
const SPAN: usize = 10;

/// What came of a case: all-in, from the first attempt, back-off and retries included.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    cores: f64,
    overload: Option<Range<Duration>>,
    /// By priority, high first: of all requests.
    all: [Sum; 2],
    /// Of those that came while more came than could be done.
    within: [Sum; 2],
    /// By second: core time of answers that came in time.
    good: Vec<f64>,
    /// By second of coming: requests of priority high that did not end well.
    failed: Vec<u32>,
    /// Answers without a fetch.
    hits: u64,
    answers: u64,
    /// Of the mean host's level, an hour.
    pub reversals: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sum {
    requests: u64,
    ok: u64,
    /// Attempts that a caller or a host refused.
    refused: u64,
    duration_s: f64,
}

impl Sum {
    fn add(&mut self, ended: &Ended) {
        self.requests += 1;
        self.ok += u64::from(ended.outcome == Outcome::Ok);
        self.refused += u64::from(ended.shed_attempts);
        self.duration_s += ended.duration.as_secs_f64();
    }

    fn mean_s(self) -> f64 {
        self.duration_s / self.requests.max(1) as f64
    }

    fn success(self) -> f64 {
        self.ok as f64 / self.requests.max(1) as f64
    }
}

impl Figures {
    pub(super) fn new(case: &Case, cores: usize) -> Self {
        let seconds = case.lasts().as_secs() as usize;
        Self {
            cores: cores as f64,
            overload: case.overload(),
            all: Default::default(),
            within: Default::default(),
            good: vec![0.0; seconds],
            failed: vec![0; seconds],
            hits: 0,
            answers: 0,
            reversals: 0.0,
        }
    }

    pub(super) fn add(&mut self, ended: &Ended) {
        let class = usize::from(ended.class != HIGH);
        self.all[class].add(ended);
        if self
            .overload
            .as_ref()
            .is_some_and(|span| span.contains(&ended.at))
        {
            self.within[class].add(ended);
        }
        let ok = ended.outcome == Outcome::Ok;
        if let Some(second) = self.failed.get_mut(ended.at.as_secs() as usize) {
            *second += u32::from(!ok && class == 0);
        }
        let Some(spent) = ended.spent.as_ref().filter(|_| ok) else {
            return;
        };
        self.answers += 1;
        self.hits += u64::from(spent.source == weir_executor::Source::Hit);
        let end = (ended.at + ended.duration).as_secs() as usize;
        if let Some(second) = self.good.get_mut(end) {
            *second += spent.run.as_secs_f64();
        }
    }

    /// Mean seconds of all requests, high and low.
    #[must_use]
    pub fn mean_s(&self) -> [f64; 2] {
        self.all.map(Sum::mean_s)
    }

    /// Mean seconds of all requests.
    #[must_use]
    pub fn all_in_s(&self) -> f64 {
        let [high, low] = self.all;
        let requests = (high.requests + low.requests).max(1);
        (high.duration_s + low.duration_s) / requests as f64
    }

    /// Refused attempts a request, of all requests.
    #[must_use]
    pub fn refused(&self) -> f64 {
        let [high, low] = self.all;
        let requests = (high.requests + low.requests).max(1);
        (high.refused + low.refused) as f64 / requests as f64
    }

    /// Share of requests that ended well, high and low: of those that came in overload, if there was one.
    #[must_use]
    pub fn success(&self) -> [f64; 2] {
        match self.overload {
            Some(_) => self.within.map(Sum::success),
            None => self.all.map(Sum::success),
        }
    }

    /// Share of answers without a fetch.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.answers.max(1) as f64
    }

    /// Core time of answers in time over what all cores could do: in overload, if there was one.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        let all = 0..self.good.len();
        self.goodput_of(self.seconds().unwrap_or(all))
    }

    /// The least goodput of any ten seconds of the overload.
    #[must_use]
    pub fn worst(&self) -> Option<f64> {
        let spans = self.spans()?.map(|from| self.goodput_of(from..from + SPAN));
        spans.reduce(f64::min)
    }

    /// How long after the overload began goodput and priority high were as they should: in the ten seconds
    /// from then on, and in all the rest. None where that never came, or there was no overload.
    #[must_use]
    pub fn settled(&self) -> Option<Duration> {
        let seconds = self.seconds()?;
        let good = |span: Range<usize>| {
            let lost: u32 = self
                .failed
                .get(span.clone())
                .unwrap_or_default()
                .iter()
                .sum();
            self.goodput_of(span) >= SETTLED && lost == 0
        };
        let mut spans = self.spans()?;
        let settled = spans.find(|from| good(*from..from + SPAN) && good(*from..seconds.end));
        settled.map(|from| Duration::from_secs((from - seconds.start) as u64))
    }

    /// Where ten seconds of the overload begin.
    fn spans(&self) -> Option<Range<usize>> {
        let seconds = self.seconds()?;
        Some(seconds.start..(seconds.end + 1).saturating_sub(SPAN))
    }

    fn seconds(&self) -> Option<Range<usize>> {
        let overload = self.overload.as_ref()?;
        Some(overload.start.as_secs() as usize..overload.end.as_secs() as usize)
    }

    fn goodput_of(&self, seconds: Range<usize>) -> f64 {
        let could = self.cores * seconds.len() as f64;
        let good = self.good.get(seconds).unwrap_or_default();
        good.iter().sum::<f64>() / could.max(1e-9)
    }
}
