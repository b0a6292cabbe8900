// SPDX-License-Identifier: Apache-2.0
//! How many requests of each rank there were.

use weir_policy::{Rank, USERS};

/// By class, its users' counts: a request finds its place by its class, of which there are mostly few, without a search
/// among all ranks.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankCounts(Vec<(u8, [u64; USERS as usize])>);

impl RankCounts {
    /// One more of this rank.
    pub(crate) fn count(&mut self, rank: Rank) {
        let class = rank.class();
        let place = self.0.partition_point(|(known, _)| *known < class);
        if self.0.get(place).is_none_or(|(known, _)| *known != class) {
            self.0.insert(place, (class, [0; _]));
        }
        let user = usize::from(rank.number() % USERS);
        let counts = self.0.get_mut(place);
        if let Some(count) = counts.and_then(|(_, counts)| counts.get_mut(user)) {
            *count += 1;
        }
    }

    /// Of all ranks.
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().flat_map(|(_, counts)| counts).sum()
    }

    /// Of each rank that was seen, the most important first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Rank, u64)> + '_ {
        let counts = self.0.iter().flat_map(|(class, counts)| {
            let users = (0..).zip(counts);
            users.map(|(user, count)| (Rank::new(*class, user), *count))
        });
        counts.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_counted_is_told_in_order(ranks in prop::collection::vec((0u8..40, any::<u8>()), 0..60)) {
            let mut counts = RankCounts::default();
            let mut expected: BTreeMap<Rank, u64> = BTreeMap::new();
            for (class, user) in ranks {
                let rank = Rank::new(class, user);
                counts.count(rank);
                *expected.entry(rank).or_default() += 1;
            }
            prop_assert_eq!(counts.sum(), expected.values().sum::<u64>());
            prop_assert_eq!(counts.iter().collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
        }
    }
}
