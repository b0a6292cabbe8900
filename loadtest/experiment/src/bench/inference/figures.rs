// SPDX-License-Identifier: Apache-2.0
//! What a run comes to.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use crate::bench::inference::records::{Answered, Record};
use crate::bench::inference::run::Run;
use crate::bench::inference::workload::IMPORTANT;
use weir_replay::record::Outcome;

/// Times of one answered request, in seconds of the trace: what the model takes, as if it had not
/// been sped up, and the rest as it was. Of a request that was tried again, the rest is mostly
/// back-off, and counts as if it had not been sped up either. What was not answered took as long as
/// it may: the deadline, as if it had not been sped up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    pub(super) first_token_s: f64,
    pub(super) all_s: f64,
    /// Of these everything but the modelled host and the replayer's lag: the sidecar, whom it asks,
    /// connections, retries, and the host's process itself. None of what was not answered.
    pub(super) rest_s: Option<f64>,
}

impl Times {
    /// None if the host did not tell.
    pub(super) fn of(record: &Record, speed_up: u32, deadline: Duration) -> Option<Self> {
        if !record.is_good() {
            let deadline_s = deadline.as_secs_f64() * f64::from(speed_up);
            return Some(Self {
                first_token_s: deadline_s,
                all_s: deadline_s,
                rest_s: None,
            });
        }
        let (first, host) = record.host_us()?;
        let model_s = |us: u64| us as f64 / 1e6 * f64::from(speed_up);
        let lag_s = record.lag_us as f64 / 1e6;
        let rest_us = record.duration_us.saturating_sub(host + record.lag_us);
        let rest_s = match record.attempts {
            ..=1 => rest_us as f64 / 1e6,
            _ => model_s(rest_us),
        };
        Some(Self {
            first_token_s: model_s(first) + lag_s + rest_s,
            all_s: model_s(host) + lag_s + rest_s,
            rest_s: Some(rest_s),
        })
    }
}

pub(super) fn times(run: &Run, speed_up: u32) -> Vec<Times> {
    let times = run.records.iter();
    times
        .filter_map(|record| Times::of(record, speed_up, run.deadline))
        .collect()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean time until the first token, of those of these requests that were answered. None where none was.
pub(super) fn first_token(run: &Run, speed_up: u32, part: Range<usize>) -> Option<f64> {
    let good = run.good().filter(|record| part.contains(&record.index));
    let times: Option<Vec<f64>> = good
        .map(|record| Some(Times::of(record, speed_up, run.deadline)?.first_token_s))
        .collect();
    times
        .filter(|times| !times.is_empty())
        .map(|times| mean(&times))
}

/// Share of these requests that had no answer.
pub(super) fn lost(run: &Run, part: Range<usize>) -> f64 {
    let good = run.good().filter(|record| part.contains(&record.index));
    1.0 - good.count() as f64 / part.len() as f64
}

/// Requests by their priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    All,
    Important,
    Others,
}

impl Class {
    fn of(self, run: &Run) -> impl Iterator<Item = &Record> {
        run.records.iter().filter(move |record| match self {
            Self::All => true,
            Self::Important => record.priority == IMPORTANT,
            Self::Others => record.priority != IMPORTANT,
        })
    }
}

/// Times until the first token; what had no answer counts at the deadline.
pub(super) fn first_tokens(run: &Run, speed_up: u32, class: Class) -> Vec<f64> {
    let times = |record| Some(Times::of(record, speed_up, run.deadline)?.first_token_s);
    class.of(run).filter_map(times).collect()
}

/// Share of these requests that were answered before their deadline, after which nobody waits.
pub(super) fn answered_in_time(run: &Run, class: Class) -> f64 {
    let good = class.of(run).filter(|record| record.is_good());
    good.count() as f64 / class.of(run).count() as f64
}

/// Share of all requests that were.
pub(super) fn refused(run: &Run) -> f64 {
    let shed = |record: &&Record| record.outcome == Outcome::Shed;
    run.records.iter().filter(shed).count() as f64 / run.records.len() as f64
}

/// Share of the prompts' tokens that were cached.
pub(super) fn found<'a>(answered: impl IntoIterator<Item = &'a Answered>) -> f64 {
    let sum = |(hit, all): (u64, u64), a: &Answered| (hit + a.hit_tokens, all + a.prompt_tokens);
    let (hit, all) = answered.into_iter().fold((0, 0), sum);
    hit as f64 / all as f64
}

/// Prefill of the busiest host to the mean host's.
pub(super) fn imbalance(answered: &[Answered], hosts: usize) -> f64 {
    let mut prefill: BTreeMap<_, u64> = BTreeMap::new();
    for a in answered {
        *prefill.entry(a.host).or_default() += a.prefill_us;
    }
    let most = prefill.values().max().copied().unwrap_or(0);
    most as f64 * hosts as f64 / prefill.values().sum::<u64>() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::inference::records::{answered, sent};
    use crate::bench::inference::way::Way;
    #[test]
    fn only_the_model_was_sped_up() {
        let mut record = Record {
            lag_us: 2000,
            duration_us: 167_000,
            wait_us: Some(10_000),
            fetch_us: Some(50_000),
            run_us: Some(100_000),
            ..sent(0)
        };
        let of = |record: &Record| Times::of(record, 10, Duration::from_secs(60));
        let times = of(&record).unwrap();
        assert!((times.first_token_s - 0.607).abs() < 1e-9, "{times:?}");
        assert!((times.all_s - 1.607).abs() < 1e-9, "{times:?}");
        assert!((times.rest_s.unwrap() - 0.005).abs() < 1e-9, "{times:?}");
        record.attempts = 2;
        let retried = of(&record).unwrap();
        assert!((retried.rest_s.unwrap() - 0.05).abs() < 1e-9);
        record.run_us = None;
        assert_eq!(of(&record), None);
        // Refused early or never answered: it never was any better than the deadline.
        record.outcome = Outcome::Shed;
        let failed = of(&record).unwrap();
        assert_eq!((failed.all_s, failed.rest_s), (600.0, None));
    }

    #[test]
    fn of_a_part_of_the_requests_only_answers_have_a_first_token() {
        let waited = |index, wait_us, outcome| Record {
            wait_us: Some(wait_us),
            duration_us: wait_us,
            outcome,
            ..sent(index)
        };
        let run = Run {
            records: vec![
                waited(0, 1_000_000, Outcome::Ok),
                waited(3, 0, Outcome::Failed),
                waited(2, 2_000_000, Outcome::Ok),
                waited(1, 3_000_000, Outcome::Ok),
            ],
            ..Run::nothing(Way::Epp)
        };
        assert_eq!(first_token(&run, 2, 0..2), Some(4.0));
        assert_eq!(first_token(&run, 2, 2..4), Some(4.0));
        assert_eq!(first_token(&run, 2, 3..4), None);
        assert_eq!((lost(&run, 0..2), lost(&run, 2..4)), (0.0, 0.5));
    }

    #[test]
    fn who_is_refused_or_left_is_not_answered_in_time() {
        let of = |priority: &str, outcome| Record {
            priority: priority.to_owned(),
            outcome,
            ..sent(0)
        };
        let run = Run {
            records: vec![
                of("low", Outcome::Shed),
                of(IMPORTANT, Outcome::Ok),
                of("low", Outcome::Ok),
                of(IMPORTANT, Outcome::Timeout),
                of("low", Outcome::Timeout),
            ],
            ..Run::nothing(Way::Epp)
        };
        let in_time = [Class::All, Class::Important, Class::Others]
            .map(|class| answered_in_time(&run, class));
        assert_eq!(in_time, [0.4, 0.5, 1.0 / 3.0]);
        assert_eq!(refused(&run), 0.2);
        assert_eq!(first_tokens(&run, 2, Class::Important), [0.0, 120.0]);
    }

    #[test]
    fn hits_are_weighed_by_tokens_and_hosts_by_what_they_read() {
        let answered = |port, prefill_us, prompt_tokens, hit_tokens| Answered {
            prefill_us,
            prompt_tokens,
            hit_tokens,
            ..answered(port)
        };
        let two = [answered(1, 300, 1000, 900), answered(2, 100, 3000, 100)];
        assert_eq!(found(&two), 0.25);
        assert_eq!(imbalance(&two, 4), 3.0);
    }
}
