// SPDX-License-Identifier: Apache-2.0
//! What jobs have cost, by key: what a job is expected to cost that has not ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Keys of one generation. Two are kept, so at most twice as many are remembered.
const GENERATION: usize = 32_768;
/// A mean follows as the mean of so many of the newest: sizes of one key's jobs differ widely, and its data
/// change now and then.
const NEWEST: f64 = 16.0;

/// Core time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// To fetch the data.
    pub fetch: Duration,
    /// Of everything after that.
    pub run: Duration,
}

/// Means by key.
#[derive(Debug, Default)]
pub struct Costs {
    young: HashMap<Arc<str>, Means>,
    old: HashMap<Arc<str>, Means>,
    all: Means,
}

#[derive(Debug, Clone, Copy, Default)]
struct Means {
    fetch: Mean,
    run: Mean,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    seconds: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, cost: Duration) {
        self.count = (self.count + 1.0).min(NEWEST);
        self.seconds += (cost.as_secs_f64() - self.seconds) / self.count;
    }

    /// With nothing known of its own, and a little of it still after a few: that of all.
    fn with_prior(self, all: Self) -> Duration {
        let sum = self.seconds * self.count + all.seconds;
        Duration::from_secs_f64(sum / (self.count + 1.0))
    }
}

impl Costs {
    /// What a job of this key is expected to cost; of an unknown key, what all cost on average.
    #[must_use]
    pub fn expect(&self, key: Option<&Arc<str>>) -> Cost {
        let means = key.and_then(|key| self.young.get(key).or_else(|| self.old.get(key)));
        let means = means.copied().unwrap_or_default();
        Cost {
            fetch: means.fetch.with_prior(self.all.fetch),
            run: means.run.with_prior(self.all.run),
        }
    }

    /// A job has cost this; `fetch` only where it fetched the data itself.
    pub fn learn(&mut self, key: Option<&Arc<str>>, fetch: Option<Duration>, run: Duration) {
        let add = |means: &mut Means| {
            means.run.add(run);
            if let Some(fetch) = fetch {
                means.fetch.add(fetch);
            }
        };
        add(&mut self.all);
        let Some(key) = key else { return };
        if let Some(means) = self.young.get_mut(key) {
            return add(means);
        }
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        let mut means = self.old.get(key).copied().unwrap_or_default();
        add(&mut means);
        self.young.insert(Arc::clone(key), means);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_unknown_key_is_expected_to_cost_what_all_do_and_a_known_one_nearly_what_it_did() {
        let mut costs = Costs::default();
        assert_eq!(costs.expect(None), Cost::default());
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        for _ in 0..8 {
            costs.learn(Some(&a), None, SECOND);
            costs.learn(Some(&b), Some(SECOND / 2), 3 * SECOND);
        }
        let all = costs.expect(None);
        assert!((1.5..2.5).contains(&all.run.as_secs_f64()), "{all:?}");
        assert_eq!(costs.expect(Some(&"c".into())), all);
        let known = costs.expect(Some(&b)).run.as_secs_f64();
        assert!((2.8..3.0).contains(&known), "{known}");
        assert_eq!(costs.expect(Some(&b)).fetch, SECOND / 2);
    }

    #[test]
    fn no_more_than_two_generations_are_remembered() {
        let mut costs = Costs::default();
        for key in 0..3 * GENERATION {
            costs.learn(Some(&key.to_string().into()), None, SECOND);
        }
        assert!(costs.young.len() + costs.old.len() <= 2 * GENERATION);
        assert!(
            costs
                .young
                .contains_key((3 * GENERATION - 1).to_string().as_str())
        );
    }
}
