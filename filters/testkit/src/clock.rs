// SPDX-License-Identifier: Apache-2.0
//! Time that moves only when the test says so.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2024-01-01T00:00:00Z: a real date, so that modules which format or subtract times behave.
const WALL_AT_START: Duration = Duration::from_secs(1_704_067_200);
/// The monotonic clock of a machine that has been up for an hour: a module that subtracts a
/// time-out from "now" does not underflow by accident.
const MONOTONIC_AT_START: Duration = Duration::from_secs(3_600);

/// The clock of a [`Host`](crate::Host), shared by all its VMs. Clones show the same time.
///
/// It answers `proxy_get_current_time_nanoseconds` and the real-time clock of WASI with
/// [`wall`](Self::wall), and the monotonic clock of WASI with [`monotonic`](Self::monotonic).
/// Advancing it calls nothing; [`Host::run_for`](crate::Host::run_for) advances it and fires timers.
#[derive(Debug, Clone)]
pub struct Clock {
    monotonic: Rc<Cell<Duration>>,
    wall: Rc<Cell<Duration>>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            monotonic: Rc::new(Cell::new(MONOTONIC_AT_START)),
            wall: Rc::new(Cell::new(WALL_AT_START)),
        }
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        self.monotonic.set(self.monotonic.get() + by);
        self.wall.set(self.wall.get() + by);
    }

    /// Sets the wall clock alone, forwards or backwards, as an operator or NTP would.
    /// Times before 1970 become 1970.
    pub fn set_wall(&self, to: SystemTime) {
        self.wall
            .set(to.duration_since(UNIX_EPOCH).unwrap_or_default());
    }

    /// The wall clock.
    pub fn wall(&self) -> SystemTime {
        UNIX_EPOCH + self.wall.get()
    }

    /// Time since an arbitrary start that is the same for all VMs of the host.
    pub fn monotonic(&self) -> Duration {
        self.monotonic.get()
    }

    pub(crate) fn wall_nanos(&self) -> u64 {
        self.wall.get().as_nanos() as u64
    }

    pub(crate) fn monotonic_nanos(&self) -> u64 {
        self.monotonic.get().as_nanos() as u64
    }
}
