// SPDX-License-Identifier: Apache-2.0
//! An open loop: when each request is due. None is left out, so a late answer delays nobody's clock.

use std::cell::Cell;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Semaphore;

/// Requests at even distances.
pub(super) struct Schedule {
    start: Cell<Instant>,
    interval: Duration,
    total: u32,
    taken: Cell<u32>,
    /// One for each request whose time has come, in their order.
    due: Semaphore,
}

impl Schedule {
    pub(super) fn new(rate: f64, time: Duration) -> Self {
        Self {
            start: Cell::new(Instant::now()),
            interval: Duration::from_secs_f64(1.0 / rate),
            total: (rate * time.as_secs_f64()) as u32,
            taken: Cell::new(0),
            due: Semaphore::new(0),
        }
    }

    /// Waits for the next request that nobody else sends, and returns when it was due; none at the end.
    pub(super) async fn next(&self) -> Option<Instant> {
        let number = self.taken.get();
        if number >= self.total {
            return None;
        }
        self.taken.set(number + 1);
        self.due.acquire().await.ok()?.forget();
        // The timer goes off for the first time after one interval.
        Some(self.start.get() + self.interval * (number + 1))
    }

    /// Lets the requests go at their times. A timer of the kernel, because that of the runtime counts
    /// in milliseconds.
    pub(super) async fn keep(&self) -> Result<()> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK)?;
        let every = Expiration::Interval(TimeSpec::from_duration(self.interval));
        self.start.set(Instant::now());
        timer.set(every, TimerSetTimeFlags::empty())?;
        // It is no pipe, but is polled and read as one: eight bytes at a time.
        let timer = Receiver::from_owned_fd_unchecked(timer.into())?;
        let mut released = 0;
        while released < self.total {
            timer.readable().await?;
            let mut came = [0; 8];
            match timer.try_read(&mut came) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                read => read?,
            };
            let came = u64::from_ne_bytes(came);
            let came = came.min(u64::from(self.total - released)) as u32;
            self.due.add_permits(came as usize);
            released += came;
        }
        Ok(())
    }
}
