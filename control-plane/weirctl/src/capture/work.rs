// SPDX-License-Identifier: Apache-2.0
//! How long hosts worked: what a request's run takes, and the fetch of its key's data.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::log::Log;

/// Longest run that hosts of the simulator accept.
const LONGEST_US: u64 = 3_600_000_000;

/// Microseconds, of each request and each key.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) runs: Vec<u64>,
    pub(super) fetches: Vec<u64>,
    /// Over the keys of which it was seen.
    pub(super) fetch: u64,
}

/// What hosts took once they had begun.
#[derive(Debug, Default)]
struct Taken {
    /// As hosts say.
    told: Vec<u64>,
    /// Of a key's first requests at each host, which fetched its data if they were not there.
    firsts: Vec<u64>,
    laters: Vec<u64>,
}

impl Work {
    /// `begun`: when, of each request. `fetch`: what it is said to take.
    pub(super) fn of(log: &Log, begun: &[Option<u64>], fetch: Option<Duration>) -> Self {
        let mut met = HashSet::new();
        let mut taken: HashMap<Option<u32>, Taken> = HashMap::new();
        let mut own = vec![None; log.seen.len()];
        for ((seen, begun), own) in log.seen.iter().zip(begun).zip(&mut own) {
            if let Some(cost) = seen.cost {
                *own = Some(micros(cost.run));
                let fetch = cost.fetch.map(micros);
                taken.entry(seen.key).or_default().told.extend(fetch);
                continue;
            }
            let Some((visit, begun)) = seen.visit.zip(*begun) else {
                continue;
            };
            let took = visit.ended.saturating_sub(begun);
            let of = taken.entry(seen.key).or_default();
            if seen.key.is_some() && met.insert((seen.key, visit.host)) {
                of.firsts.push(took);
            } else {
                of.laters.push(took);
                *own = Some(took);
            }
        }
        let asked = fetch.map(micros);
        let mut medians = HashMap::new();
        let mut fetches = vec![None; log.keys.len()];
        for (key, mut taken) in taken {
            let (first, later) = (median(&mut taken.firsts), median(&mut taken.laters));
            let both = first.zip(later);
            let estimated = both.map(|(first, later)| first.saturating_sub(later));
            let fetch = asked.or(median(&mut taken.told)).or(estimated);
            medians.insert(key, (first, later));
            if let Some(key) = key {
                fetches[key as usize] = fetch;
            }
        }
        let mut known: Vec<_> = fetches.iter().flatten().copied().collect();
        let fetch = asked.or(median(&mut known)).unwrap_or(0);
        let fetches: Vec<_> = fetches
            .into_iter()
            .map(|own| own.unwrap_or(fetch))
            .collect();
        let mut all: Vec<_> = own.iter().flatten().copied().collect();
        let usual = median(&mut all);
        let of_key = |key: Option<u32>| {
            let (first, later) = medians.get(&key).copied().unwrap_or_default();
            let fetch = key.map_or(0, |key| fetches[key as usize]);
            later
                .or(first.map(|first| first.saturating_sub(fetch)))
                .or(usual)
        };
        let run = |(seen, own): (&super::log::Seen, Option<u64>)| {
            let run = own.or_else(|| of_key(seen.key)).unwrap_or(0);
            run.min(LONGEST_US)
        };
        let runs = log.seen.iter().zip(own).map(run).collect();
        Self {
            runs,
            fetches,
            fetch,
        }
    }
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

/// Between the two in the middle where there are two: of few values one of them would be far off.
fn median(values: &mut [u64]) -> Option<u64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let is_even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable(middle);
    let lower = below.iter().max().filter(|_| is_even);
    Some(lower.map_or(*upper, |lower| lower.midpoint(*upper)))
}
