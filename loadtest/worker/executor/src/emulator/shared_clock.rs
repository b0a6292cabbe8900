// SPDX-License-Identifier: Apache-2.0
//! Processor sharing: a clock that slows down while more cores are held than there are.
//!
//! Every running joblet progresses at the same rate, so one clock serves them all: a joblet ends
//! when the shared clock has advanced by its core time (the virtual time of fair queuing).

use std::time::Duration;

#[derive(Debug)]
pub(super) struct SharedClock {
    /// A moment on both clocks.
    real: Duration,
    shared: Duration,
    /// The shared clock advances by `cores / held` of the real one.
    cores: u32,
    held: u32,
}

impl Default for SharedClock {
    fn default() -> Self {
        Self {
            real: Duration::ZERO,
            shared: Duration::ZERO,
            cores: 1,
            held: 1,
        }
    }
}

impl SharedClock {
    /// What the shared clock shows at a real time.
    pub(super) fn shared(&self, real: Duration) -> Duration {
        self.shared + scale(real.saturating_sub(self.real), self.cores, self.held)
    }

    /// The real time at which the shared clock has surely reached `shared`.
    pub(super) fn real(&self, shared: Duration) -> Duration {
        let ahead = shared.saturating_sub(self.shared);
        let rounding = u64::from(self.cores != self.held);
        self.real + scale(ahead, self.held, self.cores) + Duration::from_nanos(rounding)
    }

    /// Both clocks stand here.
    pub(super) fn reach(&mut self, real: Duration, shared: Duration) {
        self.real = real;
        self.shared = shared;
    }

    /// From `real` on, so many cores serve joblets that hold so many.
    pub(super) fn set_rate(&mut self, real: Duration, cores: usize, held: usize) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).max(1);
        let (cores, held) = match held > cores {
            true => (count(cores), count(held)),
            false => (1, 1),
        };
        if (cores, held) != (self.cores, self.held) {
            let shared = self.shared(real);
            self.reach(real, shared);
            (self.cores, self.held) = (cores, held);
        }
    }
}

fn scale(time: Duration, by: u32, over: u32) -> Duration {
    if by == over {
        return time;
    }
    let nanos = time.as_nanos() * u128::from(by) / u128::from(over);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
