// SPDX-License-Identifier: Apache-2.0
//! Idle states, and which one a core falls into.
//!
//! Latencies and target residencies are those of Skylake servers in Linux's `drivers/idle/intel_idle.c`
//! (`skx_cstates`). The choice is the kernel's menu governor in short: the earlier of the next timer and what the last
//! eight idle times agree on; `drivers/cpuidle/governors/menu.c`, `get_typical_interval`.

/// Nanoseconds.
const US: u64 = 1_000;
/// Intervals that the menu governor remembers.
const REMEMBERED: usize = 8;
/// A core that idles longer than foreseen falls deeper at the next timer interrupt (250 a second).
pub(super) const AGAIN_NS: u64 = 4_000 * US;

/// Table 2.2 of document 002.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A loop that waits.
    C0,
    /// The clock is off.
    C1,
    /// And the voltage is at its lowest.
    C1e,
    /// And then off.
    C6,
}

impl State {
    pub(super) const ALL: [Self; 4] = [Self::C0, Self::C1, Self::C1e, Self::C6];

    /// From the call until work goes on.
    pub(super) fn exit_ns(self) -> u64 {
        match self {
            Self::C0 => 0,
            Self::C1 => 2 * US,
            Self::C1e => 10 * US,
            Self::C6 => 133 * US,
        }
    }

    /// Shorter idle times are not worth it.
    fn residency_ns(self) -> u64 {
        match self {
            Self::C0 => 0,
            Self::C1 => 2 * US,
            Self::C1e => 20 * US,
            Self::C6 => 600 * US,
        }
    }
}

/// The states that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// All four, as the menu governor chooses.
    All,
    /// C0 alone (section 4.6).
    OnlyC0,
    /// None deeper than C1.
    UpToC1,
    /// C6, however short the idle time.
    AlwaysC6,
}

/// What is remembered of a core's idle times.
#[derive(Debug, Default)]
pub(super) struct Menu {
    intervals: [u64; REMEMBERED],
    seen: usize,
}

impl Menu {
    /// The core has been idle for so long.
    pub(super) fn woken(&mut self, after_ns: u64) {
        self.intervals[self.seen % REMEMBERED] = after_ns;
        self.seen += 1;
    }

    /// `timer_ns` is the time until the next timer of the core, where one is known.
    pub(super) fn choose(&self, allowed: Allowed, timer_ns: u64) -> State {
        match allowed {
            Allowed::OnlyC0 => State::C0,
            Allowed::UpToC1 => State::C1,
            Allowed::AlwaysC6 => State::C6,
            Allowed::All => {
                let foreseen = self.typical().unwrap_or(u64::MAX).min(timer_ns);
                let worth = |state: &State| state.residency_ns() <= foreseen;
                State::ALL
                    .into_iter()
                    .rev()
                    .find(worth)
                    .unwrap_or(State::C0)
            }
        }
    }

    /// What most of the remembered agree on: spread within 20 µs, or below a sixth of the mean. The longest are left
    /// out until that is so, or a quarter of them is out.
    fn typical(&self) -> Option<u64> {
        if self.seen < REMEMBERED {
            return None;
        }
        let mut sorted = self.intervals;
        sorted.sort_unstable();
        (REMEMBERED * 3 / 4..=REMEMBERED).rev().find_map(|kept| {
            let kept = &sorted[..kept];
            let n = kept.len() as f64;
            let mean = kept.iter().sum::<u64>() as f64 / n;
            let variance = kept
                .iter()
                .map(|one| (*one as f64 - mean).powi(2))
                .sum::<f64>()
                / n;
            let agree = variance <= (20_000.0f64).powi(2) || mean * mean > 36.0 * variance;
            agree.then_some(mean as u64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_is_called_every_hundred_microseconds_does_not_fall_into_c6() {
        let mut menu = Menu::default();
        assert_eq!(menu.choose(Allowed::All, u64::MAX), State::C6);
        for after in [100, 100, 100, 1_000_000, 100, 100, 100, 100] {
            menu.woken(after * US);
        }
        assert_eq!(menu.choose(Allowed::All, u64::MAX), State::C1e);
        for after in [1_000, 200_000, 40_000, 9_000] {
            menu.woken(after * US);
        }
        assert_eq!(
            menu.choose(Allowed::All, u64::MAX),
            State::C6,
            "they do not agree"
        );
    }
}
