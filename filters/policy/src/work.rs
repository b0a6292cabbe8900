// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use crate::CLASSES;

/// What something costs a host, in core time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// To fetch the data that a request needs, where they are not cached.
    pub fetch: Duration,
    /// Everything else. Of a prompt the time in which its answer is written.
    pub run: Duration,
}

impl Cost {
    /// What requests are taken to cost where no host has told what one did: to fetch as much as to run, so that a
    /// host with the data is left when about one job for each of its cores waits there. How long matters little, as
    /// it stands on both sides; a second is long beside the time between two figures of a host, in which its cores
    /// are taken to have worked off what waited.
    pub const UNTOLD: Self = Self {
        fetch: Duration::from_secs(1),
        run: Duration::from_secs(1),
    };
}

/// Core time by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work(Vec<(u8, Duration)>);

impl Work {
    /// From times by class, class 0 first; classes that do not exist are ignored.
    pub fn by_class(times: impl IntoIterator<Item = Duration>) -> Self {
        let classes = (0..CLASSES as u8).zip(times);
        Self(classes.filter(|(_, time)| !time.is_zero()).collect())
    }

    /// Each class that has any, the most important first.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Duration)> + '_ {
        self.0.iter().copied()
    }

    /// What comes before a request of this class: its own class and all that are more important.
    pub fn ahead_of(&self, class: u8) -> Duration {
        let before = self.0.iter().take_while(|(other, _)| *other <= class);
        before.fold(Duration::ZERO, |sum, (_, time)| sum.saturating_add(*time))
    }

    /// All classes together.
    pub fn total(&self) -> Duration {
        self.ahead_of(u8::MAX)
    }

    /// Adds to a class.
    pub fn add(&mut self, class: u8, time: Duration) {
        let class = class.min(CLASSES as u8 - 1);
        match self.0.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => {
                if let Some((_, sum)) = self.0.get_mut(at) {
                    *sum = sum.saturating_add(time);
                }
            }
            Err(at) => self.0.insert(at, (class, time)),
        }
    }

    /// Takes from a class, down to nothing.
    pub fn take(&mut self, class: u8, time: Duration) {
        let class = class.min(CLASSES as u8 - 1);
        if let Some((_, sum)) = self.0.iter_mut().find(|(other, _)| *other == class) {
            *sum = sum.saturating_sub(time);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_ahead_is_the_sum_of_the_classes_that_are_no_less_important(
            added in prop::collection::vec((0u8..40, 0u64..1000), 0..60), class in 0u8..40,
        ) {
            let mut work = Work::default();
            let mut classes = [0u64; CLASSES as usize];
            for (class, millis) in added {
                work.add(class, Duration::from_millis(millis));
                classes[usize::from(class.min(31))] += millis;
            }
            let ahead: u64 = classes.iter().take(usize::from(class) + 1).sum();
            prop_assert_eq!(work.ahead_of(class), Duration::from_millis(ahead));
            let same = Work::by_class(classes.map(Duration::from_millis));
            prop_assert_eq!(same.total(), work.total());
            for (class, time) in same.iter() {
                work.take(class, time);
            }
            prop_assert_eq!(work.total(), Duration::ZERO);
        }
    }
}
