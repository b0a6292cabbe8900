// SPDX-License-Identifier: Apache-2.0
//! When reports with news may go.

use std::time::Duration;

/// So many may go at once after a silence: a request comes, and ends, and others beside it.
const AT_ONCE: u32 = 4;

/// Keeps reports with news of one stream a pause apart in the mean, as weir-control asks, but lets a few go at once after
/// a silence (the generic cell rate algorithm: ITU-T I.371, annex A).
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// When the next would go, had none gone at once.
    next: Duration,
}

impl Pace {
    /// Whether one may go now.
    pub fn allows(&self, pause: Duration, now: Duration) -> bool {
        now.saturating_add(pause.saturating_mul(AT_ONCE - 1)) >= self.next
    }

    /// One goes now.
    pub fn told(&mut self, pause: Duration, now: Duration) {
        self.next = self.next.max(now).saturating_add(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_go_at_once_and_then_one_in_each_pause() {
        let (pause, step) = (Duration::from_secs(1), Duration::from_millis(100));
        let mut pace = Pace::default();
        let mut gone = |begin: Duration, steps: u32| {
            let times = (0..steps).map(|n| begin + step * n);
            let allowed = times.filter(|now| {
                let is_allowed = pace.allows(pause, *now);
                if is_allowed {
                    pace.told(pause, *now);
                }
                is_allowed
            });
            allowed.count()
        };
        let begin = Duration::from_secs(100);
        assert_eq!(gone(begin, 10), 4);
        assert_eq!(gone(begin + pause, 100), 10);
        assert_eq!(gone(begin + 31 * pause, 10), 4, "after a silence");
    }
}
