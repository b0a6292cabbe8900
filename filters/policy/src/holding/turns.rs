// SPDX-License-Identifier: Apache-2.0
//! Whose turn it is among those who wait with the same class: start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996,
//! section 2). A user who waits with many requests has them served by turns with those of others, however many there are.
//! Delay scheduling asks for it: who is passed over for its data keeps its turn.

use std::time::Duration;

use crate::Rank;
use crate::level::CLASSES;

/// Core time in microseconds. A user's turn comes when all who wait have had so much.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// Where the next turn of each user begins, of those alone that are ahead of their class: at most one for each rank.
    next: Vec<(Rank, u64)>,
    /// The turn of who was let go last, by class.
    now: [u64; CLASSES as usize],
}

impl Turns {
    /// The turn that a request would have that begins to wait now.
    pub(super) fn next(&self, rank: Rank) -> u64 {
        let mut next = self.next.iter();
        let next = next.find(|(user, _)| *user == rank);
        next.map_or(0, |(_, next)| *next)
            .max(reached(&self.now, rank))
    }

    /// The turn of a request that begins to wait and is expected to need so much core time.
    pub(super) fn take(&mut self, rank: Rank, cost: Duration) -> u64 {
        let (turn, now) = (self.next(rank), &self.now);
        self.next
            .retain(|(user, next)| *user != rank && *next > reached(now, *user));
        self.next.push((rank, turn.saturating_add(micros(cost))));
        turn
    }

    /// The request of this turn gets its core time. The turns before it have come, but for the `first` of those that still
    /// wait: who was let go before them has not moved them back.
    pub(super) fn served(&mut self, rank: Rank, turn: u64, first: Option<u64>) {
        if let Some(now) = self.now.get_mut(usize::from(rank.class())) {
            *now = turn.min(first.unwrap_or(turn)).max(*now);
        }
    }

    /// A request that was to need so much is gone without it.
    pub(super) fn give_back(&mut self, rank: Rank, cost: Duration) {
        if let Some((_, next)) = self.next.iter_mut().find(|(user, _)| *user == rank) {
            *next = next.saturating_sub(micros(cost));
        }
    }
}

/// What costs nothing would be everybody's first.
fn micros(cost: Duration) -> u64 {
    u64::try_from(cost.as_micros()).unwrap_or(u64::MAX).max(1)
}

fn reached(now: &[u64], rank: Rank) -> u64 {
    let now = now.get(usize::from(rank.class()));
    now.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Of two users who both wait all the time, neither has had more than the other but by one request of each.
        #[test]
        fn users_who_wait_have_the_same_core_time(
            costs in prop::collection::vec((1u64..100, 1u64..100), 1..60),
        ) {
            let mut turns = Turns::default();
            let users = [Rank::new(3, 1), Rank::new(3, 2)];
            let mut waiting = Vec::new();
            for (one, other) in &costs {
                for (user, cost) in [(0, *one), (1, *other)] {
                    let turn = turns.take(users[user], Duration::from_micros(cost));
                    waiting.push((turn, waiting.len(), user, cost));
                }
            }
            waiting.sort_unstable();
            let mut had = [0, 0];
            let mut left = [costs.len(); 2];
            for (turn, _, user, cost) in waiting {
                turns.served(users[user], turn, None);
                had[user] += cost;
                left[user] -= 1;
                if left.contains(&0) {
                    break;
                }
                prop_assert!(had[0].abs_diff(had[1]) <= 2 * 100, "{had:?}");
            }
        }

        #[test]
        fn a_user_that_comes_new_has_the_next_turn_and_few_are_kept(
            before in prop::collection::vec((0u8..4, 0u8..8, 0u64..50, any::<bool>()), 0..200),
        ) {
            let mut turns = Turns::default();
            for (class, user, cost, goes) in before {
                let rank = Rank::new(class, user);
                let turn = turns.take(rank, Duration::from_micros(cost));
                if goes {
                    turns.served(rank, turn, None);
                }
            }
            let new = Rank::new(2, 100);
            let turn = turns.take(new, Duration::from_micros(1));
            prop_assert_eq!(turn, reached(&turns.now, new));
            prop_assert!(turns.next.len() <= 4 * 8 + 1);
        }
    }

    /// Who was not there gets nothing for it.
    #[test]
    fn a_user_that_comes_late_does_not_have_the_turns_that_it_missed() {
        let mut turns = Turns::default();
        let (early, late) = (Rank::new(3, 1), Rank::new(3, 2));
        let cost = Duration::from_micros(10);
        let taken: Vec<u64> = (0..4).map(|_| turns.take(early, cost)).collect();
        assert_eq!(taken, [0, 10, 20, 30]);
        turns.served(early, taken[2], None);
        assert_eq!(turns.take(late, cost), 20);
        assert_eq!(turns.take(Rank::new(4, 2), cost), 0, "another class");
    }
}
