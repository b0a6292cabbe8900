// SPDX-License-Identifier: Apache-2.0
//! A frequency for each amount of work that a call has done.

use crate::frequency::calls::Speed;
use crate::frequency::calls::work::{BUCKETS, bucket, end};
use crate::frequency::{Khz, Range};

/// Halvings of the price of time until it is exact enough.
const HALVINGS: usize = 30;

/// What is wanted of a schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) efficient: Khz,
    /// Of the calls, so many shall end within `budget` seconds.
    pub(super) quantile: f64,
    pub(super) budget: f64,
}

/// Frequencies by bucket of work done; never falling.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    by_work: [Khz; BUCKETS],
}

impl Schedule {
    /// Highest from the start: for functions of which too little is known.
    pub(super) fn fastest(speed: &Speed) -> Self {
        Self {
            by_work: [speed.fastest; BUCKETS],
        }
    }

    /// The one of least expected energy that has the quantile's work done in time; nothing where none has.
    pub(super) fn new(
        survivors: &[f64; BUCKETS],
        wanted: &Wanted,
        speed: &Speed,
        range: &Range,
    ) -> Option<Self> {
        let priced = |price| Self::priced(price, survivors, wanted, speed, range);
        let (mut low, mut high) = (0.0, f64::from(speed.fastest.0).powi(3));
        if let (schedule, true) = priced(low) {
            return Some(schedule);
        }
        if !priced(high).1 {
            return None;
        }
        for _ in 0..HALVINGS {
            let price = (low + high) / 2.0;
            if priced(price).1 {
                high = price;
            } else {
                low = price;
            }
        }
        Some(priced(high).0)
    }

    /// The schedule for one price of time, and whether it is in time. See the policy's documentation.
    fn priced(
        price: f64,
        survivors: &[f64; BUCKETS],
        wanted: &Wanted,
        speed: &Speed,
        range: &Range,
    ) -> (Self, bool) {
        let efficient = f64::from(wanted.efficient.0).powi(3);
        let mut by_work = [speed.fastest; BUCKETS];
        let (mut elapsed, mut begin) = (0.0, 0.0);
        let mut khz = wanted.efficient;
        for (at, survivors) in survivors.iter().enumerate() {
            let tail = *survivors <= 1.0 - wanted.quantile;
            if !tail {
                khz = range.at_least(Khz((efficient + price / survivors).cbrt() as u32));
            } else if elapsed > wanted.budget {
                break;
            }
            by_work[at] = khz;
            elapsed += (end(at) - begin) / speed.at(khz);
            begin = end(at);
            if !tail && elapsed > wanted.budget {
                return (Self { by_work }, false);
            }
        }
        (Self { by_work }, true)
    }

    /// After so much work.
    pub(super) fn after(&self, work: f64) -> Khz {
        self.by_work[bucket(work)]
    }

    /// How much more work is done before the frequency rises.
    pub(super) fn until_faster(&self, work: f64) -> Option<f64> {
        let now = bucket(work);
        let faster = self.by_work[now..]
            .iter()
            .position(|khz| *khz > self.by_work[now])?;
        Some((end(now + faster - 1) - work).max(0.0))
    }
}
