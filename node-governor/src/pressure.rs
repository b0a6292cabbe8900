// SPDX-License-Identifier: Apache-2.0
//! Whether the mesh is about to refuse requests to this host, or does so already. Pure.
//!
//! ```text
//!  row: level below all, or requests wait longer than `delay` ──> pressed, and for `hold` after that
//! ```
//! weir-control's levels aim at a wait of 2 s by default; the governor acts at a hundredth of that, so that
//! cores and frequency come first and shedding is for what they cannot carry.

use std::time::Duration;

use crate::sensed::{Nanos, Row};

/// Where pressure begins and how long it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Requests that wait longer at the host are a reason to act. DAGOR (Zhou et al., *Overload Control for
    /// Scaling WeChat Microservices*, SoCC 2018) calls a server overloaded at 20 ms.
    pub delay: Duration,
    /// It is not over before so long has passed without a reason: one core less would bring it back. Of our own
    /// choice: five readings of a host that is asked once a second, the default.
    pub hold: Duration,
    /// What the mesh said longer ago says nothing.
    pub stale: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(20),
            hold: Duration::from_secs(5),
            stale: Duration::from_secs(5),
        }
    }
}

/// What was said of late.
#[derive(Debug)]
pub struct Pressure {
    params: Params,
    /// When there was a reason last.
    last: Option<Nanos>,
}

impl Pressure {
    /// None so far.
    pub fn new(params: Params) -> Self {
        Self { params, last: None }
    }

    /// Takes in what the mesh says, and tells whether there is pressure.
    pub fn look(&mut self, now: Nanos, row: Option<&Row>) -> bool {
        let fresh = self.fresh(now, row);
        if fresh.is_some_and(|row| self.is_reason(row)) {
            self.last = Some(now);
        }
        self.last
            .is_some_and(|last| now.since(last) < self.params.hold)
    }

    /// Since when the first of those who wait at the host has waited, where the mesh said of late that any does.
    pub fn waits_since(&self, now: Nanos, row: Option<&Row>) -> Option<Nanos> {
        let delay = self.fresh(now, row)?.delay?;
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        (nanos > 0).then(|| Nanos(now.0.saturating_sub(nanos)))
    }

    fn fresh<'a>(&self, now: Nanos, row: Option<&'a Row>) -> Option<&'a Row> {
        row.filter(|row| now.since(row.at) <= self.params.stale)
    }

    fn is_reason(&self, row: &Row) -> bool {
        row.refuses || row.delay.is_some_and(|delay| delay > self.params.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: u64, refuses: bool, delay_ms: u64) -> Row {
        Row {
            at: second(at),
            refuses,
            delay: Some(Duration::from_millis(delay_ms)),
        }
    }

    fn second(second: u64) -> Nanos {
        Nanos(second * 1_000_000_000)
    }

    #[test]
    fn who_waits_is_what_the_mesh_said_of_late() {
        let pressure = Pressure::new(Params::default());
        let since = |now, row: Row| pressure.waits_since(second(now), Some(&row));
        let half = Nanos(second(10).0 + 500_000_000);
        assert_eq!(since(11, row(10, false, 500)), Some(half));
        assert_eq!(since(16, row(10, false, 500)), None, "too long ago");
        assert_eq!(since(11, row(10, false, 0)), None, "nobody waits");
        assert_eq!(pressure.waits_since(second(11), None), None);
    }

    #[test]
    fn a_level_below_all_and_a_long_wait_are_pressure_until_they_are_over_for_a_while() {
        for reason in [row(10, true, 0), row(10, false, 21)] {
            let mut pressure = Pressure::new(Params::default());
            assert!(!pressure.look(second(9), None));
            assert!(!pressure.look(second(9), Some(&row(9, false, 20))));
            assert!(pressure.look(second(10), Some(&reason)));
            let calm = row(11, false, 0);
            assert!(pressure.look(second(14), Some(&calm)), "held");
            assert!(!pressure.look(second(15), Some(&calm)));
        }
    }

    #[test]
    fn what_was_said_long_ago_is_no_reason() {
        let mut pressure = Pressure::new(Params::default());
        assert!(!pressure.look(second(20), Some(&row(10, true, 500))));
    }
}
