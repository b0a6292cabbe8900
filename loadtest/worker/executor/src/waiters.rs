// SPDX-License-Identifier: Apache-2.0
//! The jobs that need one joblet, by importance. Nearly always it is one.

use std::collections::BTreeSet;

use crate::id::Rank;

#[derive(Debug)]
pub(crate) struct Waiters {
    first: Option<Rank>,
    /// None where there is no first.
    others: BTreeSet<Rank>,
}

impl Waiters {
    pub(crate) fn of(rank: Rank) -> Self {
        Self {
            first: Some(rank),
            others: BTreeSet::new(),
        }
    }

    pub(crate) fn first(&self) -> Option<Rank> {
        self.first
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// The most important first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Rank> + '_ {
        self.first.into_iter().chain(self.others.iter().copied())
    }

    pub(crate) fn insert(&mut self, rank: Rank) {
        match self.first {
            None => self.first = Some(rank),
            Some(first) if rank < first => {
                self.others.insert(first);
                self.first = Some(rank);
            }
            Some(first) if rank > first => {
                self.others.insert(rank);
            }
            Some(_) => {}
        }
    }

    pub(crate) fn remove(&mut self, rank: Rank) {
        if self.first == Some(rank) {
            self.first = self.others.pop_first();
        } else {
            self.others.remove(&rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::JobId;

    proptest! {
        #[test]
        fn waiters_are_a_sorted_set(changes in prop::collection::vec((any::<bool>(), 0u8..3, 0u64..4), 1..60)) {
            let mut set = BTreeSet::new();
            let mut waiters: Option<Waiters> = None;
            for (comes, class, job) in changes {
                let rank = Rank { class, job: JobId(job) };
                match (&mut waiters, comes) {
                    (None, _) => {
                        set.insert(rank);
                        waiters = Some(Waiters::of(rank));
                    }
                    (Some(waiters), true) => {
                        set.insert(rank);
                        waiters.insert(rank);
                    }
                    (Some(waiters), false) => {
                        set.remove(&rank);
                        waiters.remove(rank);
                    }
                }
                let waiters = waiters.as_ref().unwrap();
                prop_assert!(waiters.iter().eq(set.iter().copied()));
                prop_assert_eq!(waiters.first(), set.first().copied());
                prop_assert_eq!((waiters.len(), waiters.is_empty()), (set.len(), set.is_empty()));
            }
        }
    }
}
