// SPDX-License-Identifier: Apache-2.0
use crate::{Level, Rank};

/// Hosts in order of their admission level, so that those which admit a rank are a prefix.
///
/// The order is total (level falling, then index in the table rising), hence the same wherever the levels
/// are the same. Finding the prefix costs O(log hosts); a changed level moves one entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct AdmissionIndex {
    /// Level by table index; none where the host takes no requests at all.
    levels: Vec<Option<Level>>,
    in_table: Vec<u32>,
    order: Vec<u32>,
}

impl AdmissionIndex {
    /// `levels[i]` is the level of the host with index i, none where it is not up.
    pub(crate) fn new(levels: Vec<Option<Level>>) -> Self {
        let in_table: Vec<u32> = (0u32..)
            .zip(&levels)
            .filter_map(|(host, level)| level.map(|_| host))
            .collect();
        // Pairs as the ring has them, so that the module has one sort for both: by a function it was 17 kB more.
        let keyed = in_table
            .iter()
            .map(|host| (sort_key(&levels, *host), *host));
        let mut order: Vec<(u64, u32)> = keyed.collect();
        order.sort_unstable();
        let order = order.into_iter().map(|(_, host)| host).collect();
        Self {
            levels,
            in_table,
            order,
        }
    }

    /// Takes other levels; the same cost nothing.
    pub(crate) fn set_levels(&mut self, levels: Vec<Option<Level>>) {
        if self.levels != levels {
            *self = Self::new(levels);
        }
    }

    /// Every host that is up, most admitting first.
    pub(crate) fn up(&self) -> &[u32] {
        &self.order
    }

    /// Every host that is up, in the order of the table: it does not change with levels.
    pub(crate) fn up_in_table(&self) -> &[u32] {
        &self.in_table
    }

    /// The hosts that admit `rank`, most admitting first.
    pub(crate) fn admitting(&self, rank: Rank) -> &[u32] {
        let admits = |host: &u32| self.level(*host).is_some_and(|level| level.admits(rank));
        // Most of the time nobody refuses, and the last tells.
        if self.order.last().is_some_and(admits) {
            return &self.order;
        }
        let end = self.order.partition_point(admits);
        self.order.get(..end).unwrap_or_default()
    }

    /// The host's level; none where it is not up.
    pub(crate) fn level(&self, host: u32) -> Option<Level> {
        self.levels.get(host as usize).copied().flatten()
    }

    /// Changes the level of a host that is up; others are left alone.
    pub(crate) fn set_level(&mut self, host: u32, level: Level) {
        if self.level(host).is_none_or(|old| old == level) {
            return;
        }
        let place = |index: &Self| {
            let key = sort_key(&index.levels, host);
            index
                .order
                .partition_point(|other| sort_key(&index.levels, *other) < key)
        };
        let from = place(self);
        if let Some(entry) = self.levels.get_mut(host as usize) {
            self.order.remove(from);
            *entry = Some(level);
            let to = place(self);
            self.order.insert(to, host);
        }
    }
}

/// By the level, falling, and then by the index; those that are not up are last.
fn sort_key(levels: &[Option<Level>], host: u32) -> u64 {
    let level = levels.get(host as usize).copied().flatten();
    let admitted = level.map_or(0, |level| u64::from(level.ranks()) + 1);
    ((u64::from(u32::MAX) - admitted) << 32) | u64::from(host)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn changing_levels_one_by_one_gives_the_index_of_the_final_levels(
            first in prop::collection::vec(prop::option::of(0u16..=4096), 1..40),
            changes in prop::collection::vec((0usize..40, 0u16..=4096), 0..80),
            rank in 0u32..4096,
        ) {
            let mut levels: Vec<_> = first.iter().map(|level| level.map(Level::admitting)).collect();
            let mut index = AdmissionIndex::new(levels.clone());
            for (host, level) in changes {
                index.set_level(host as u32, Level::admitting(level));
                if let Some(entry @ Some(_)) = levels.get_mut(host) {
                    *entry = Some(Level::admitting(level));
                }
            }
            let rank = Rank::from_number(rank).unwrap();
            let rebuilt = AdmissionIndex::new(levels.clone());
            prop_assert_eq!(index.up(), rebuilt.up());
            prop_assert_eq!(index.admitting(rank), rebuilt.admitting(rank));
            let mut admitting: Vec<_> = (0u32..)
                .zip(&levels)
                .filter(|(_, level)| level.is_some_and(|level| level.admits(rank)))
                .map(|(host, _)| host)
                .collect();
            let mut found = index.admitting(rank).to_vec();
            admitting.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, admitting);
        }
    }
}
