// SPDX-License-Identifier: Apache-2.0
//! Pauses between tries.

use std::time::Duration;

/// Twice the shortest pause.
const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(15);

/// Twice as long after each try, up to a limit.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// The next pause. `chance` is even in 0 to 1: a fleet that lost its weir-control does not come back all at
    /// once.
    pub(super) fn next(&mut self, chance: f64) -> Duration {
        let pause = jittered(self.next, chance);
        self.next = (self.next * 2).min(LAST);
        pause
    }

    /// For what does not mend itself.
    pub(super) fn longest(chance: f64) -> Duration {
        jittered(LAST, chance)
    }
}

/// From half of it to all of it.
fn jittered(pause: Duration, chance: f64) -> Duration {
    pause.mul_f64(0.5 + 0.5 * chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_half_a_second_to_fifteen() {
        let pauses = |chance| {
            let mut backoff = Backoff::default();
            [(); 6].map(|()| backoff.next(chance).as_millis())
        };
        assert_eq!(pauses(0.0), [500, 1000, 2000, 4000, 7500, 7500]);
        assert_eq!(pauses(1.0), [1000, 2000, 4000, 8000, 15_000, 15_000]);
        assert_eq!(Backoff::longest(1.0), LAST);
    }
}
