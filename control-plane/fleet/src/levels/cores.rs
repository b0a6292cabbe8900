// SPDX-License-Identifier: Apache-2.0
//! The cores that a level was come to on, so that it rises at once where a governor gives more.

use weir_policy::Level;

/// What hosts have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cores {
    hosts: usize,
    millicores: u64,
}

/// What a level stands for. By default nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing(Option<Cores>);

impl Cores {
    /// Of hosts with so many thousandths of a core; none where that is not known (0) of all.
    pub(super) fn of(millicores: impl Iterator<Item = u32>) -> Option<Self> {
        let mut cores = Self {
            hosts: 0,
            millicores: 0,
        };
        for millicores in millicores {
            if millicores == 0 {
                return None;
            }
            cores.hosts += 1;
            cores.millicores += u64::from(millicores);
        }
        (cores.hosts > 0).then_some(cores)
    }

    /// Only of as many hosts: a new one begins with nothing cached.
    fn beyond(self, before: Self) -> u64 {
        match self.hosts == before.hosts {
            true => self.millicores.saturating_sub(before.millicores),
            false => 0,
        }
    }
}

impl Standing {
    /// The share that `now` is more.
    pub(super) fn gained(self, now: Option<Cores>) -> f64 {
        match (self.0, now) {
            (Some(before), Some(now)) => now.beyond(before) as f64 / before.millicores as f64,
            _ => 0.0,
        }
    }

    /// The level has been stepped. Cores that go and come back while it stands are none that were gained.
    pub(super) fn stepped(&mut self, now: Option<Cores>, before: Level, after: Level) {
        let lost = self
            .0
            .zip(now)
            .is_some_and(|(had, now)| had.beyond(now) > 0);
        if !lost || after < before || after == Level::ALL {
            self.0 = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(millicores: &[u32]) -> Option<Cores> {
        Cores::of(millicores.iter().copied())
    }

    #[test]
    fn more_cores_on_as_many_hosts_are_gained_and_nothing_else_is() {
        for (before, now, gained) in [
            (&[1000][..], &[2000][..], 1.0),
            (&[1000, 1000], &[1000, 1500], 0.25),
            (&[2000], &[1000], 0.0),
            (&[1000], &[1000, 1000], 0.0),
            (&[1000, 0], &[1000, 1000], 0.0),
            (&[], &[1000], 0.0),
        ] {
            let standing = Standing(cores(before));
            assert_eq!(standing.gained(cores(now)), gained, "{before:?} {now:?}");
        }
    }

    #[test]
    fn what_comes_back_was_not_gained_unless_the_level_fell_or_is_open() {
        let low = Level::admitting(100);
        let lower = Level::admitting(50);
        for (before, after, gained) in [(low, low, 0.0), (low, lower, 1.0), (low, Level::ALL, 1.0)]
        {
            let mut standing = Standing(cores(&[2000]));
            standing.stepped(cores(&[1000]), before, after);
            assert_eq!(standing.gained(cores(&[2000])), gained);
        }
    }
}
