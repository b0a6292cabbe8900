// SPDX-License-Identifier: Apache-2.0
//! What a run comes to.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Result, ensure};

use crate::inference::records::{Answered, Record};
use crate::inference::run::Run;

/// Times of one answered request, in seconds of the trace: what the model takes, as if it had not
/// been sped up, and the way there and back as it was. Of a request that was tried again, the way
/// is mostly back-off, and counts as if it had not been sped up either.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    pub(super) first_token_s: f64,
    pub(super) all_s: f64,
    /// Of these outside of the host: the sidecar, whom it asks, connections, retries.
    pub(super) way_s: f64,
}

impl Times {
    /// None if the host did not tell.
    pub(super) fn of(record: &Record, speed_up: u32) -> Option<Self> {
        let first = record.wait_us? + record.fetch_us?;
        let host = first + record.run_us?;
        let model_s = |us: u64| us as f64 / 1e6 * f64::from(speed_up);
        let way_us = record.duration_us.saturating_sub(host);
        let way_s = match record.attempts {
            ..=1 => way_us as f64 / 1e6,
            _ => model_s(way_us),
        };
        Some(Self {
            first_token_s: model_s(first) + way_s,
            all_s: model_s(host) + way_s,
            way_s,
        })
    }
}

pub(super) fn times(run: &Run, speed_up: u32) -> Vec<Times> {
    let times = run.good().map(|record| Times::of(record, speed_up));
    times.flatten().collect()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// By the nearest rank; NaN of nothing.
pub(super) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    let at = rank.saturating_sub(1);
    sorted.get(at).copied().unwrap_or(f64::NAN)
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

/// Counts again what hosts may have found: no more than what each had read before.
pub(super) fn check_hits(answered: &[Answered]) -> Result<()> {
    let mut in_order: Vec<&Answered> = answered.iter().collect();
    in_order.sort_by_key(|a| a.begun_us);
    let mut read: HashMap<_, HashSet<&str>> = HashMap::new();
    for a in in_order {
        let before = read.entry(a.host).or_default();
        let here = a
            .blocks
            .iter()
            .take_while(|block| before.contains(block.as_str()));
        let most = here.count();
        ensure!(
            a.hit_blocks <= most,
            "{} claims to have found {} blocks, and had read only {most} of them",
            a.host,
            a.hit_blocks
        );
        before.extend(a.blocks.iter().map(String::as_str));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(port: u16) -> Answered {
        Answered {
            host: ([127, 0, 0, 1], port).into(),
            begun_us: 0,
            prefill_us: 0,
            blocks: vec![],
            hit_blocks: 0,
            prompt_tokens: 0,
            hit_tokens: 0,
        }
    }

    #[test]
    fn a_host_cannot_have_found_what_it_never_read() {
        let read = |begun_us, port, blocks: &str, hit_blocks| Answered {
            begun_us,
            blocks: blocks.chars().map(String::from).collect(),
            hit_blocks,
            ..answered(port)
        };
        // As they ended, not as they began.
        let good = [
            read(2, 1, "abd", 2),
            read(1, 1, "abc", 0),
            read(3, 2, "abc", 0),
        ];
        check_hits(&good).unwrap();
        let elsewhere = [read(1, 1, "abc", 0), read(2, 2, "abc", 1)];
        let behind_a_gap = [read(1, 1, "abc", 0), read(2, 1, "xbc", 1)];
        for bad in [elsewhere, behind_a_gap] {
            let error = check_hits(&bad).unwrap_err().to_string();
            assert!(error.contains("claims to have found 1 blocks"), "{error}");
        }
    }

    #[test]
    fn only_the_model_was_sped_up() {
        let mut record = Record {
            lag_us: 0,
            duration_us: 165_000,
            outcome: "ok".to_owned(),
            attempts: 1,
            reason: None,
            wait_us: Some(10_000),
            fetch_us: Some(50_000),
            run_us: Some(100_000),
        };
        let times = Times::of(&record, 10).unwrap();
        assert!((times.first_token_s - 0.605).abs() < 1e-9, "{times:?}");
        assert!((times.all_s - 1.605).abs() < 1e-9, "{times:?}");
        assert!((times.way_s - 0.005).abs() < 1e-9, "{times:?}");
        record.attempts = 2;
        assert!((Times::of(&record, 10).unwrap().way_s - 0.05).abs() < 1e-9);
        record.run_us = None;
        assert_eq!(Times::of(&record, 10), None);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), 50.0);
        assert_eq!(percentile(&values, 0.99), 99.0);
        assert_eq!(percentile(&[7.0], 0.01), 7.0);
        assert!(percentile(&[], 0.5).is_nan());
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
