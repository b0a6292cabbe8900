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
/// before what is used more. What is used less than half as much makes room for it. What is too large for any room keeps
/// nobody else waiting. Where nothing has changed since the last time, nothing changes.
pub fn fit(claimants: &mut [Claimant], room: usize) {
    while taken(claimants) > room && drop_least(claimants, u64::MAX) {}
    let most = room / BACK_BELOW.1 * BACK_BELOW.0;
    // What was dropped for another may fit beside it.
    while take_back(claimants, most) {}
}

fn taken(claimants: &[Claimant]) -> usize {
    let kept = claimants.iter().filter(|claimant| claimant.kept);
    kept.fold(0, |sum, kept| sum.saturating_add(kept.bytes))
}

/// Drops what is used least, if it is used so little.
fn drop_least(claimants: &mut [Claimant], most: u64) -> bool {
    // What takes nothing makes no room.
    let kept = claimants.iter_mut();
    let kept = kept.filter(|one| one.kept && one.bytes > 0 && one.usage <= most);
    let least = kept.min_by_key(|claimant| (claimant.usage, usize::MAX - claimant.bytes));
    let Some(least) = least else { return false };
    least.kept = false;
    true
}

/// Takes back the most used of what was dropped, if there is room or others make it.
fn take_back(claimants: &mut [Claimant], most: usize) -> bool {
    let dropped = claimants.iter().enumerate();
    let dropped = dropped.filter(|(_, one)| !one.kept && one.bytes <= most);
    let next = dropped.min_by_key(|(_, one)| (u64::MAX - one.usage, one.bytes));
    let Some((place, &Claimant { bytes, usage, .. })) = next else {
        return false;
    };
    // Who makes room has less than half the use, so that two that are alike do not change places.
    let less = (usage / 2).checked_sub(1);
    let stay = claimants.iter().filter(|one| one.kept);
    let stay = stay.filter(|one| less.is_none_or(|less| one.usage > less));
    let stay = stay.fold(0, |sum: usize, one| sum.saturating_add(one.bytes));
    if stay.saturating_add(bytes) > most {
        return false;
    }
    let room = most - bytes;
    while taken(claimants) > room && less.is_some_and(|less| drop_least(claimants, less)) {}
    let Some(back) = claimants.get_mut(place) else {
        return false;
    };
    back.kept = true;
    true
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
            let fits = after.iter().filter(|one| !one.kept && one.bytes <= room / 5 * 4);
            if let Some(next) = fits.max_by_key(|one| one.usage) {
                let as_used = after.iter().filter(|one| one.kept && one.usage * 2 + 2 > next.usage);
                let bytes: usize = as_used.map(|one| one.bytes).sum();
                prop_assert!(bytes + next.bytes > room / 5 * 4, "others could make room");
            }
            let mut again = after.clone();
            fit(&mut again, room);
            prop_assert_eq!(again, after);
        }
    }

    #[test]
    fn what_is_used_no_longer_makes_room_for_what_is() {
        let of = |usage, kept| Claimant {
            bytes: 60,
            usage,
            kept,
        };
        let mut both = [of(0, true), of(600, false)];
        fit(&mut both, 100);
        assert_eq!(both.map(|one| one.kept), [false, true]);
        let mut alike = [of(301, true), of(600, false)];
        fit(&mut alike, 100);
        assert_eq!(alike.map(|one| one.kept), [true, false]);
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
