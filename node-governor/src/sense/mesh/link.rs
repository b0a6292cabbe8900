// SPDX-License-Identifier: Apache-2.0
//! Both directions, shared with the loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::sensed::{Nanos, Row};

/// More cores than weir-control believes in are told as so many.
const MOST_MILLICORES: u32 = 1_024_000;

/// Clones are the same. Neither side ever waits for the other.
#[derive(Clone, Debug, Default)]
pub struct Link(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// When the figures were true; 0: there are none.
    at: AtomicU64,
    /// Written before `at`, so that they are never older than it says.
    figures: AtomicU64,
    /// 0: not reported yet.
    capacity: AtomicU32,
    connected: AtomicBool,
}

const REFUSES: u64 = 1 << 63;
const HAS_DELAY: u64 = 1 << 62;
/// Microseconds; 146,000 years.
const DELAY: u64 = HAS_DELAY - 1;

impl Link {
    /// What weir-control said last, however long ago; none where it has no figures.
    pub fn row(&self) -> Option<Row> {
        let at = self.0.at.load(Ordering::Acquire);
        let figures = self.0.figures.load(Ordering::Relaxed);
        (at > 0).then(|| Row {
            at: Nanos(at),
            refuses: figures & REFUSES != 0,
            delay: (figures & HAS_DELAY != 0).then(|| Duration::from_micros(figures & DELAY)),
        })
    }

    /// Whether weir-control has answered, on a stream that has not ended since.
    pub fn is_connected(&self) -> bool {
        self.0.connected.load(Ordering::Relaxed)
    }

    pub(super) fn set_connected(&self, connected: bool) {
        self.0.connected.store(connected, Ordering::Relaxed);
    }

    /// What the service has: cores, each times its speed beside its highest, in thousandths. weir-control is
    /// asked from the first of these on; nothing is told as one thousandth.
    pub fn report(&self, capacity_millicores: u32) {
        let capacity = capacity_millicores.clamp(1, MOST_MILLICORES);
        self.0.capacity.store(capacity, Ordering::Relaxed);
    }

    /// As reported; 0 before that.
    pub(super) fn capacity(&self) -> u32 {
        self.0.capacity.load(Ordering::Relaxed)
    }

    /// Waits for the first report, looking this often.
    pub(super) async fn first_capacity(&self, look: Duration) {
        while self.capacity() == 0 {
            tokio::time::sleep(look).await;
        }
    }

    /// weir-control says this.
    pub fn said(&self, row: Option<Row>) {
        let Some(row) = row else {
            self.0.at.store(0, Ordering::Release);
            return;
        };
        let micros =
            |delay: Duration| u64::try_from(delay.as_micros()).map_or(DELAY, |us| us.min(DELAY));
        let refuses = if row.refuses { REFUSES } else { 0 };
        let delay = row.delay.map_or(0, |delay| HAS_DELAY | micros(delay));
        self.0.figures.store(refuses | delay, Ordering::Relaxed);
        self.0.at.store(row.at.0.max(1), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_loop_reads_what_was_said(at in 1u64.., refuses: bool, us in prop::option::of(0..=DELAY)) {
            let link = Link::default();
            let delay = us.map(Duration::from_micros);
            let row = Row { at: Nanos(at), refuses, delay };
            prop_assert_eq!(link.row(), None);
            link.said(Some(row));
            prop_assert_eq!(link.clone().row(), Some(row));
            link.said(None);
            prop_assert_eq!(link.row(), None);
        }
    }

    #[test]
    fn a_delay_longer_than_any_is_the_longest() {
        let link = Link::default();
        link.said(Some(Row {
            at: Nanos(0),
            refuses: false,
            delay: Some(Duration::MAX),
        }));
        let row = link.row().unwrap();
        assert_eq!(
            (row.refuses, row.delay),
            (false, Some(Duration::from_micros(DELAY)))
        );
    }

    #[test]
    fn what_is_reported_is_what_weir_control_takes() {
        let link = Link::default();
        assert_eq!(link.capacity(), 0);
        for (reported, told) in [(0, 1), (1, 1), (1500, 1500), (u32::MAX, MOST_MILLICORES)] {
            link.report(reported);
            assert_eq!(link.capacity(), told);
        }
    }
}
