// SPDX-License-Identifier: Apache-2.0
//! The service's own latency: of its hot calls, or what a page of metrics or a query says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::config;
use crate::sensed::{Nanos, Sensed, Tail};

/// Calls that are kept; of more in one window the newest.
const CALLS: usize = 8192;
/// The quantile is taken this often.
const EVERY: Duration = Duration::from_secs(1);

/// A latency that is measured elsewhere, shared with whoever measures it.
#[derive(Clone, Debug, Default)]
pub struct Measured(Arc<Mutex<Option<Tail>>>);

impl Measured {
    /// From now on; none where nothing is known.
    pub fn set(&self, tail: Option<Tail>) {
        if let Ok(mut measured) = self.0.lock() {
            *measured = tail;
        }
    }

    /// What was put there last, and what was `known` before while it is being written: that is as good.
    pub(crate) fn last(&self, known: Option<Tail>) -> Option<Tail> {
        self.0.try_lock().map_or(known, |tail| *tail)
    }

    #[cfg(test)]
    pub(super) fn get(&self) -> Option<Tail> {
        *self.0.lock().unwrap()
    }
}

/// Where the latency comes from.
#[derive(Debug)]
pub(super) enum Tails {
    Calls(Calls),
    Elsewhere(Measured),
}

impl Tails {
    pub(super) fn new(settings: &config::Tail) -> Self {
        match &settings.source {
            config::TailSource::Calls => Self::Calls(Calls {
                quantile: settings.quantile,
                window: settings.window,
                calls: Vec::with_capacity(CALLS),
                next: 0,
                sorted: Vec::with_capacity(CALLS),
                taken: Nanos::default(),
                tail: None,
            }),
            config::TailSource::Page(_) | config::TailSource::Query(_) => {
                Self::Elsewhere(Measured::default())
            }
        }
    }

    pub(super) fn measured(&self) -> Measured {
        match self {
            Self::Calls(_) => Measured::default(),
            Self::Elsewhere(measured) => measured.clone(),
        }
    }

    pub(super) fn sense(&mut self, now: Nanos, sensed: &mut Sensed) {
        sensed.tail = match self {
            Self::Calls(calls) => {
                calls.add(now, sensed);
                calls.tail(now)
            }
            Self::Elsewhere(measured) => measured.last(sensed.tail),
        };
    }
}

/// Of the calls in the last while.
#[derive(Debug)]
pub(super) struct Calls {
    quantile: f64,
    window: Duration,
    /// A ring.
    calls: Vec<(Nanos, Duration)>,
    next: usize,
    sorted: Vec<Duration>,
    taken: Nanos,
    tail: Option<Tail>,
}

impl Calls {
    fn add(&mut self, now: Nanos, sensed: &Sensed) {
        for call in &sensed.finished {
            let entry = (now, call.took);
            match self.calls.get_mut(self.next) {
                Some(slot) => *slot = entry,
                None => self.calls.push(entry),
            }
            self.next = (self.next + 1) % CALLS;
        }
    }

    fn tail(&mut self, now: Nanos) -> Option<Tail> {
        if now.since(self.taken) < EVERY {
            return self.tail;
        }
        self.taken = now;
        self.sorted.clear();
        let mut last = Nanos::default();
        for (at, took) in &self.calls {
            if now.since(*at) < self.window {
                self.sorted.push(*took);
                last = last.max(*at);
            }
        }
        // The smallest that so large a share does not exceed.
        let rank = (self.quantile * self.sorted.len() as f64).ceil() as usize;
        let index = rank.max(1) - 1;
        self.tail = (index < self.sorted.len()).then(|| Tail {
            latency: *self.sorted.select_nth_unstable(index).1,
            requests: self.sorted.len() as u64,
            at: last,
        });
        self.tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensed::Finished;

    #[test]
    fn the_tail_is_of_the_calls_in_the_window_and_none_without() {
        let settings = config::Tail {
            source: config::TailSource::Calls,
            quantile: 0.99,
            window: Duration::from_secs(10),
            every: Duration::from_secs(1),
        };
        let mut tails = Tails::new(&settings);
        let second = 1_000_000_000;
        let mut sensed = Sensed::default();
        tails.sense(Nanos(second), &mut sensed);
        assert_eq!(sensed.tail, None);
        sensed.finished = (1..=100)
            .map(|millis| Finished {
                function: 0,
                core: 0,
                took: Duration::from_millis(millis),
                at: Nanos(0),
            })
            .collect();
        tails.sense(Nanos(2 * second), &mut sensed);
        let tail = sensed.tail.unwrap();
        assert_eq!(tail.latency, Duration::from_millis(99));
        assert_eq!((tail.requests, tail.at), (100, Nanos(2 * second)));
        sensed.finished.clear();
        tails.sense(Nanos(12 * second), &mut sensed);
        assert_eq!(sensed.tail, None);
    }
}
