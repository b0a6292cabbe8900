// SPDX-License-Identifier: Apache-2.0
//! When hosts were up, when overloaded, and what their DAGOR levels were.

use std::time::Duration;

use weir_policy::overload::breaker;

use crate::Sample;

/// Holds from its time until the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// From when.
    pub at: Duration,
    /// Whether requests could go there.
    pub up: bool,
    /// Whether it had more stalled joblets than breaker and DAGOR allow.
    pub overloaded: bool,
    /// Ranks that it admitted, 0 to 4096.
    pub level: u16,
}

/// The changes of every host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    hosts: Vec<Vec<Change>>,
}

impl History {
    /// Of hosts that were not polled yet.
    #[must_use]
    pub fn new(hosts: usize) -> Self {
        Self {
            hosts: vec![Vec::new(); hosts],
        }
    }

    /// Adds what a poll said.
    pub fn add(&mut self, sample: Sample) {
        let Sample {
            at,
            host,
            up,
            level,
            queued,
            ..
        } = sample;
        let overloaded = queued > breaker::QUEUED_JOBS;
        if let Some(changes) = self.hosts.get_mut(host) {
            let new = Change {
                at,
                up,
                overloaded,
                level,
            };
            if changes
                .last()
                .is_none_or(|last| Change { at, ..*last } != new)
            {
                changes.push(new);
            }
        }
    }

    /// Of each host, in order of time.
    #[must_use]
    pub fn hosts(&self) -> &[Vec<Change>] {
        &self.hosts
    }

    /// The part of the time from `from` to `to` that a host was as asked for.
    #[must_use]
    pub fn share(
        &self,
        host: usize,
        from: Duration,
        to: Duration,
        wanted: impl Fn(&Change) -> bool,
    ) -> f64 {
        let changes = self.hosts.get(host).map(Vec::as_slice).unwrap_or_default();
        let ends = changes.iter().skip(1).map(|next| next.at).chain([to]);
        let wanted = changes
            .iter()
            .zip(ends)
            .filter(|(change, _)| wanted(change));
        let overlap = |(change, end): (&Change, Duration)| {
            end.min(to)
                .saturating_sub(change.at.max(from))
                .as_secs_f64()
        };
        wanted.map(overlap).sum::<f64>() / (to - from).as_secs_f64().max(1e-9)
    }

    /// How often levels turned from falling to rising or back, of all hosts.
    #[must_use]
    pub fn reversals(&self) -> u64 {
        let of = |changes: &Vec<Change>| {
            let steps = changes
                .windows(2)
                .map(|pair| pair[1].level.cmp(&pair[0].level));
            let moves: Vec<_> = steps.filter(|step| step.is_ne()).collect();
            moves.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
        };
        self.hosts.iter().map(of).sum()
    }

    /// The stretch of this length, beginning at a whole number of lengths, in which levels changed most.
    #[must_use]
    pub fn liveliest(&self, length: Duration) -> Duration {
        let mut counts = std::collections::BTreeMap::new();
        for changes in &self.hosts {
            for pair in changes
                .windows(2)
                .filter(|pair| pair[0].level != pair[1].level)
            {
                let number = pair[1].at.as_nanos() / length.as_nanos().max(1);
                *counts.entry(number as u32).or_insert(0u32) += 1;
            }
        }
        let most = counts
            .into_iter()
            .max_by_key(|(number, count)| (*count, std::cmp::Reverse(*number)));
        length * most.map_or(0, |(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(changes: &[(u64, bool, u16)]) -> History {
        let mut history = History::new(2);
        for (at, up, level) in changes {
            let at = Duration::from_secs(*at);
            history.add(Sample {
                at,
                host: 1,
                up: *up,
                level: *level,
                queued: 100,
                busy: None,
            });
        }
        history
    }

    #[test]
    fn only_changes_are_kept_and_time_down_is_counted_between_them() {
        let history = history(&[(0, true, 9), (5, true, 9), (10, false, 9), (30, true, 9)]);
        assert_eq!(history.hosts()[1].len(), 3);
        let down = |from, to| {
            history.share(
                1,
                Duration::from_secs(from),
                Duration::from_secs(to),
                |change| !change.up,
            )
        };
        assert!((down(0, 40) - 0.5).abs() < 1e-9);
        assert!((down(20, 40) - 0.5).abs() < 1e-9);
        assert_eq!(
            (
                down(0, 10),
                history.share(0, Duration::ZERO, Duration::MAX, |change| !change.up)
            ),
            (0.0, 0.0)
        );
    }

    #[test]
    fn a_level_that_falls_and_rises_turns_once_and_lively_is_where_most_changes_are() {
        let history = history(&[
            (0, true, 9),
            (5, true, 4),
            (6, true, 2),
            (70, true, 5),
            (71, true, 9),
        ]);
        assert_eq!(history.reversals(), 1);
        let minute = Duration::from_secs(60);
        assert_eq!(history.liveliest(minute), Duration::ZERO);
    }
}
