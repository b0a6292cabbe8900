// SPDX-License-Identifier: Apache-2.0
//! How soon the service has its second core when too much begins to come, and how much of that time it has it.

use serde::Serialize;

use crate::shared_node::plan::Plan;
use crate::shared_node::rounds::Sample;

/// Of a round, or of several.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reaction {
    /// From each beginning of too much load to the second core, in seconds; where it never came, the whole part.
    pub second_core_after_s: Vec<f64>,
    /// Looks during too much load,
    pub looks: usize,
    /// and those at which the service had both cores.
    pub with_both: usize,
}

impl Reaction {
    /// Of a round.
    pub(crate) fn of(samples: &[Sample], plan: &Plan) -> Self {
        let over = plan.over.as_secs_f64();
        let begins = [0.0, over + plan.calm.as_secs_f64()];
        let part = |begin: f64| {
            let within = move |sample: &&Sample| (begin..begin + over).contains(&sample.at_s);
            samples.iter().filter(within)
        };
        let after = |begin: f64| {
            let has_both = part(begin).find(|sample| sample.service > 1);
            has_both.map_or(over, |sample| sample.at_s - begin)
        };
        let looks = || begins.into_iter().flat_map(part);
        Self {
            second_core_after_s: begins.map(after).to_vec(),
            looks: looks().count(),
            with_both: looks().filter(|sample| sample.service > 1).count(),
        }
    }

    /// Of several rounds.
    #[must_use]
    pub fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for reaction in all {
            let after = &reaction.second_core_after_s;
            sum.second_core_after_s.extend(after);
            sum.looks += reaction.looks;
            sum.with_both += reaction.with_both;
        }
        sum
    }

    /// To the second core, in the mean, in milliseconds.
    #[must_use]
    pub fn after_ms(&self) -> f64 {
        let count = self.second_core_after_s.len().max(1);
        1e3 * self.second_core_after_s.iter().sum::<f64>() / count as f64
    }

    /// Share of the time of too much load in which the service had both cores.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.with_both as f64 / self.looks.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cores: &[(f64, usize)]) -> Reaction {
        let sample = |(at_s, service): &(f64, usize)| Sample {
            at_s: *at_s,
            service: *service,
            batch_runs: true,
        };
        let samples: Vec<Sample> = cores.iter().map(sample).collect();
        Reaction::of(&samples, &Plan::QUICK)
    }

    #[test]
    fn the_second_core_is_waited_for_from_each_beginning_of_too_much_load() {
        // Too much comes from 0 to 6 s and from 11 to 17 s.
        let found = of(&[(0.0, 1), (0.5, 2), (1.0, 1), (7.0, 2), (11.0, 1), (12.0, 2)]);
        assert_eq!(found.second_core_after_s, [0.5, 1.0]);
        assert_eq!((found.with_both, found.looks), (2, 5));
        assert_eq!(found.after_ms(), 750.0);
        assert_eq!(Reaction::sum([&found, &found].into_iter()).share(), 0.4);
    }

    #[test]
    fn one_core_throughout_is_the_whole_part_and_both_throughout_is_nothing() {
        let alone = of(&[(0.0, 1), (8.0, 2), (11.0, 1)]);
        assert_eq!((alone.after_ms(), alone.share()), (6_000.0, 0.0));
        let both = of(&[(0.0, 2), (11.0, 2)]);
        assert_eq!((both.after_ms(), both.share()), (0.0, 1.0));
    }
}
