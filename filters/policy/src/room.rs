// SPDX-License-Identifier: Apache-2.0
//! What is kept where there is not room for all of it: what is used most.

use std::time::Duration;

/// After so long a request counts half, so that one busy hour does not outweigh today. Of our own choice.
const HALF_LIFE: Duration = Duration::from_secs(300);

/// What was dropped comes back only where it fills this share of the room at most, so that what grows and shrinks a
/// little is not dropped and taken back by turns. Of our own choice.
const BACK_BELOW: (usize, usize) = (4, 5);

/// How much something was used lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    requests: u64,
    since: Duration,
}

impl Usage {
    /// It was used so often since it was told last.
    pub fn add(&mut self, requests: u64, now: Duration) {
        let halvings = self.halvings(now);
        self.requests = self.lately(now).saturating_add(requests);
        self.since += HALF_LIFE.saturating_mul(halvings);
    }

    /// Requests, of which those that are a half-life old count half.
    pub fn lately(&self, now: Duration) -> u64 {
        self.requests.checked_shr(self.halvings(now)).unwrap_or(0)
    }

    fn halvings(&self, now: Duration) -> u32 {
        let halvings = now.saturating_sub(self.since).as_nanos() / HALF_LIFE.as_nanos();
        u32::try_from(halvings).unwrap_or(u32::MAX)
    }
}

/// Something that wants room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// What it takes, or would take.
    pub bytes: usize,
    /// Those that are used less go first, and of these the largest.
    pub usage: u64,
    /// Whether it has its room, before and after.
    pub kept: bool,
}

/// Decides who has room: what is kept takes `room` bytes at most, and nothing is taken back that would fill it, nor
/// before what is used more. What is too large for any room keeps nobody else waiting. Where nothing has changed since the last time, nothing changes.
pub fn fit(claimants: &mut [Claimant], room: usize) {
    let taken = |claimants: &[Claimant]| {
        let kept = claimants.iter().filter(|claimant| claimant.kept);
        kept.fold(0, |sum: usize, kept| sum.saturating_add(kept.bytes))
    };
    while taken(claimants) > room {
        // What takes nothing makes no room.
        let kept = claimants.iter_mut();
        let kept = kept.filter(|claimant| claimant.kept && claimant.bytes > 0);
        let least = kept.min_by_key(|claimant| (claimant.usage, usize::MAX - claimant.bytes));
        let Some(least) = least else { return };
        least.kept = false;
    }
    let mut filled = taken(claimants);
    let most = room / BACK_BELOW.1 * BACK_BELOW.0;
    let mut dropped: Vec<&mut Claimant> = claimants.iter_mut().filter(|one| !one.kept).collect();
    dropped.sort_unstable_by_key(|claimant| (u64::MAX - claimant.usage, claimant.bytes));
    for claimant in dropped {
        let with_it = filled.saturating_add(claimant.bytes);
        match with_it <= most {
            true => (claimant.kept, filled) = (true, with_it),
            false if claimant.bytes > most => {}
            false => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claimants() -> impl Strategy<Value = Vec<Claimant>> {
        let one = (0usize..100, 0u64..10, any::<bool>());
        let one = one.prop_map(|(bytes, usage, kept)| Claimant { bytes, usage, kept });
        prop::collection::vec(one, 0..12)
    }

    proptest! {
        #[test]
        fn the_room_is_kept_the_least_used_goes_first_and_a_second_look_changes_nothing(
            before in claimants(), room in 0usize..600,
        ) {
            let mut after = before.clone();
            fit(&mut after, room);
            let taken: usize = after.iter().filter(|one| one.kept).map(|one| one.bytes).sum();
            prop_assert!(taken <= room, "{taken} of {room}");
            let pairs = || before.iter().zip(&after);
            for (_, gone) in pairs().filter(|(before, after)| before.kept && !after.kept) {
                for (_, stayed) in pairs().filter(|(before, after)| before.kept && after.kept) {
                    let no_matter = stayed.bytes == 0 || gone.bytes > room / 5 * 4;
                    prop_assert!(gone.usage <= stayed.usage || no_matter);
                }
            }
            let back = pairs().any(|(before, after)| !before.kept && after.kept);
            prop_assert!(!back || taken <= room * 4 / 5, "{taken} of {room}");
            let mut again = after.clone();
            fit(&mut again, room);
            prop_assert_eq!(again, after);
        }
    }

    #[test]
    fn usage_halves_and_the_newest_counts_whole() {
        let (mut usage, start) = (Usage::default(), Duration::from_secs(1));
        usage.add(1000, start);
        assert_eq!(usage.lately(start), 1000);
        usage.add(100, start + HALF_LIFE);
        assert_eq!(usage.lately(start + HALF_LIFE), 600);
        assert_eq!(usage.lately(start + 100 * HALF_LIFE), 0);
    }
}
