// SPDX-License-Identifier: Apache-2.0
//! When requests are due: Poisson arrivals at a rate that is drawn anew for each interval.
//!
//! Document 004 (*Cloud Computing Architecture, semester project report*, part 4) has mcperf draw it
//! from 5,000 to 100,000 requests a second every 10, 6 or 5 s (`qps_interval`, `qps_min`, `qps_max`,
//! `qps_seed`). The draws here are not mcperf's: a seed means another sequence there.

use std::time::Duration;

use thiserror::Error;
use weir_replay::rng::SplitMix64;

/// Figures of a shorter interval would be of a handful of requests.
const SHORTEST: Duration = Duration::from_millis(100);
/// Longer runs are several runs.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// No machine serves more from one client.
const MOST: f64 = 1e7;

/// Why there is no such load.
#[derive(Debug, Error, PartialEq)]
pub enum Refused {
    /// The interval.
    #[error("interval: {0:?} is not between 100ms and the duration, {1:?}")]
    Interval(Duration, Duration),
    /// The duration.
    #[error("duration: {0:?} is not between 100ms and 24 hours")]
    Duration(Duration),
    /// A rate.
    #[error("{0}: {1} requests a second are not above 0 and at most 10,000,000")]
    Rate(&'static str, f64),
    /// The rates.
    #[error("min: {0} requests a second are more than max, {1}")]
    Order(f64, f64),
}

/// A load whose rate is drawn anew, uniformly, for each interval. Pure data, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    interval: Duration,
    duration: Duration,
    min: f64,
    max: f64,
    seed: u64,
}

/// One interval of the load; times are nanoseconds from the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// It begins then,
    pub start_ns: u64,
    /// and has ended by then.
    pub end_ns: u64,
    /// Requests a second.
    pub rate: f64,
}

/// A request that is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// Nanoseconds from the start.
    pub at_ns: u64,
    /// The number of the interval, from 0.
    pub interval: u64,
}

impl Steps {
    /// Rates are requests a second; equal ones make a constant load.
    ///
    /// # Errors
    /// There is no such load.
    pub fn new(
        interval: Duration,
        duration: Duration,
        (min, max): (f64, f64),
        seed: u64,
    ) -> Result<Self, Refused> {
        if !(SHORTEST..=LONGEST).contains(&duration) {
            return Err(Refused::Duration(duration));
        }
        if !(SHORTEST..=duration).contains(&interval) {
            return Err(Refused::Interval(interval, duration));
        }
        for (name, rate) in [("min", min), ("max", max)] {
            if !(rate > 0.0 && rate <= MOST) {
                return Err(Refused::Rate(name, rate));
            }
        }
        if min > max {
            return Err(Refused::Order(min, max));
        }
        Ok(Self {
            interval,
            duration,
            min,
            max,
            seed,
        })
    }

    /// How long the load lasts.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// The intervals in order. The last one may be shorter.
    pub fn intervals(&self) -> impl Iterator<Item = Step> + use<> {
        let mut random = self.random(Stream::Rates);
        let (interval, whole) = (nanos(self.interval), nanos(self.duration));
        let (min, max) = (self.min, self.max);
        (0..whole.div_ceil(interval)).map(move |number| Step {
            start_ns: number * interval,
            end_ns: ((number + 1) * interval).min(whole),
            rate: min + random.unit() * (max - min),
        })
    }

    /// Every request, in order.
    pub fn arrivals(&self) -> impl Iterator<Item = Arrival> + use<> {
        let mut random = self.random(Stream::Arrivals);
        self.intervals()
            .enumerate()
            .flat_map(move |(number, step)| {
                // Exponential gaps have no memory, so each interval may begin afresh.
                let mut random_here = SplitMix64::new(random.next_u64());
                let mut at = step.start_ns as f64;
                std::iter::from_fn(move || {
                    at += -(1.0 - random_here.unit()).ln() / step.rate * 1e9;
                    (at < step.end_ns as f64).then_some(Arrival {
                        at_ns: at as u64,
                        interval: number as u64,
                    })
                })
            })
    }

    /// Draws which keys are asked for.
    pub(crate) fn random_keys(&self) -> SplitMix64 {
        self.random(Stream::Keys)
    }

    /// Streams of their own, so that more requests do not change the rates.
    fn random(&self, stream: Stream) -> SplitMix64 {
        let mut seeds = SplitMix64::new(self.seed);
        let mut seed = seeds.next_u64();
        for _ in 0..stream as u32 {
            seed = seeds.next_u64();
        }
        SplitMix64::new(seed)
    }
}

#[derive(Clone, Copy)]
enum Stream {
    Rates,
    Arrivals,
    Keys,
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
