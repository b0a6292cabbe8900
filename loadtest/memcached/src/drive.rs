// SPDX-License-Identifier: Apache-2.0
//! Sends each request when it is due and counts its answer in the interval it was due in.
//!
//! One thread: what is due is gathered for each connection and written at once, then poll(2) waits
//! for answers until the next request is due.

mod open;
mod way;

use std::iter::Peekable;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_replay::rng::SplitMix64;

use crate::answer::Broken;
use crate::connection::{Connection, Outcome};
use crate::drive::open::Open;
pub use crate::drive::way::Way;
use crate::interval::Interval;
use crate::keys::Keys;
use crate::page::Seen;
use crate::schedule::{Arrival, Steps};
use crate::target::Target;

/// Requests that are sent before answers are looked at again, so that a client that is behind does
/// not let answers wait.
const BATCH: usize = 256;
/// A thread's timers are otherwise up to 50 µs late (prctl(2), `PR_SET_TIMERSLACK`).
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// A load whose connections are made.
pub struct Load<'a> {
    steps: &'a Steps,
    keys: &'a Keys,
    way: Way,
    /// None is one that has broken; it is not made again.
    connections: Vec<Option<Connection>>,
    turn: usize,
    random: SplitMix64,
    open: Open,
    in_flight: u64,
    broken: Option<Broken>,
    start: Instant,
    seen: Arc<Seen>,
}

impl<'a> Load<'a> {
    /// Makes the connections.
    ///
    /// # Errors
    /// A number is out of its range, or memcached is not there.
    pub fn connect(target: Target, steps: &'a Steps, keys: &'a Keys, way: Way) -> Result<Self> {
        way.check()?;
        let connections = (0..way.connections)
            .map(|_| {
                let stream = target.connect()?;
                let connection = Connection::new(stream, way.keys_per_get, keys.value_bytes())?;
                Ok(Some(connection))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            steps,
            keys,
            way,
            connections,
            turn: 0,
            random: steps.random_keys(),
            open: Open::new(steps),
            in_flight: 0,
            broken: None,
            start: Instant::now(),
            seen: Arc::default(),
        })
    }

    /// What has been seen until now, also while it runs.
    #[must_use]
    pub fn seen(&self) -> Arc<Seen> {
        self.seen.clone()
    }

    /// Runs the whole load; tells of each interval when all its answers are in, in order.
    ///
    /// # Errors
    /// Every connection has broken, or `tell` fails.
    pub fn run(mut self, mut tell: impl FnMut(&Interval) -> Result<()>) -> Result<()> {
        // Only a finer timer: without it, figures are a little worse.
        let _ = rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS));
        let mut arrivals = self.steps.arrivals().peekable();
        let end_ns = nanos(self.steps.duration());
        let last_ns = end_ns.saturating_add(nanos(self.way.patience));
        self.start = Instant::now();
        loop {
            self.send_due(&mut arrivals);
            let now = self.now();
            let next = arrivals.peek();
            // Its interval is not over, however late it is.
            let unsent = next.map_or(u64::MAX, |arrival| arrival.interval);
            self.open.end(now, unsent, &mut tell)?;
            let wake = match next {
                Some(arrival) => arrival.at_ns.min(self.open.next_ns),
                None if now < end_ns => end_ns,
                None if self.in_flight == 0 || now >= last_ns => break,
                None => last_ns,
            };
            if self.connections.iter().all(Option::is_none) {
                break;
            }
            self.receive(wake.saturating_sub(now))?;
        }
        self.give_up();
        self.open.end(u64::MAX, u64::MAX, &mut tell)?;
        match self.broken {
            Some(broken) if self.connections.iter().all(Option::is_none) => {
                bail!("every connection to memcached has broken, the last one because {broken}")
            }
            _ => Ok(()),
        }
    }

    fn send_due(&mut self, arrivals: &mut Peekable<impl Iterator<Item = Arrival>>) {
        self.open.begin(self.now());
        for _ in 0..BATCH {
            let now = self.now();
            let Some(arrival) = arrivals.next_if(|arrival| arrival.at_ns <= now) else {
                break;
            };
            self.open.begin(arrival.at_ns);
            self.send(arrival, now);
        }
        self.flush();
    }

    fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }

    fn send(&mut self, arrival: Arrival, now: u64) {
        let interval = self.open.of(arrival);
        if self.in_flight >= u64::from(self.way.in_flight) {
            self.seen.failed();
            return interval.dropped(self.in_flight);
        }
        let turns = self.connections.len();
        let next = (0..turns)
            .map(|step| (self.turn + step) % turns)
            .find(|&index| self.connections[index].is_some());
        let Some((index, connection)) =
            next.and_then(|index| Some((index, self.connections[index].as_mut()?)))
        else {
            self.seen.failed();
            return interval.dropped(self.in_flight);
        };
        self.turn = index + 1;
        self.in_flight += 1;
        interval.sent(now - arrival.at_ns, self.in_flight);
        let count = u64::from(self.keys.count());
        let random = &mut self.random;
        // The remainder favours some keys by less than a millionth of a millionth.
        let numbers = (0..self.way.keys_per_get).map(|_| (random.next_u64() % count) as u32);
        connection.ask(arrival, numbers, self.keys);
    }

    fn flush(&mut self) {
        for index in 0..self.connections.len() {
            let flushed = self.connections[index].as_mut().map(Connection::flush);
            if let Some(Err(broken)) = flushed {
                self.lose(index, broken);
            }
        }
    }

    /// Waits for answers, at most so long, and counts them.
    fn receive(&mut self, at_most_ns: u64) -> Result<()> {
        let ready = self.wait(at_most_ns)?;
        let start = self.start;
        for index in ready {
            let Some(connection) = &mut self.connections[index] else {
                continue;
            };
            let (open, in_flight, seen) = (&mut self.open, &mut self.in_flight, &self.seen);
            let received = connection.receive(self.keys, &mut |arrival, outcome| {
                *in_flight -= 1;
                let interval = open.of(arrival);
                match outcome {
                    Outcome::Answered { misses } => {
                        let took = nanos(start.elapsed()).saturating_sub(arrival.at_ns);
                        interval.answered(took, misses);
                        seen.answered(took);
                    }
                    Outcome::Failed => {
                        interval.failed();
                        seen.failed();
                    }
                }
            });
            if let Err(broken) = received {
                self.lose(index, broken);
            }
        }
        Ok(())
    }

    /// The connections that have something to read.
    fn wait(&self, at_most_ns: u64) -> Result<Vec<usize>> {
        let (indexes, mut polled): (Vec<usize>, Vec<PollFd<'_>>) = self
            .connections
            .iter()
            .enumerate()
            .filter_map(|(index, connection)| {
                let connection = connection.as_ref()?;
                let writing = match connection.is_writing() {
                    true => PollFlags::OUT,
                    false => PollFlags::empty(),
                };
                let polled = PollFd::new(connection.stream(), PollFlags::IN | writing);
                Some((index, polled))
            })
            .unzip();
        let limit = Timespec {
            tv_sec: (at_most_ns / 1_000_000_000) as i64,
            tv_nsec: (at_most_ns % 1_000_000_000) as i64,
        };
        match poll(&mut polled, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let unread = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        Ok(indexes
            .into_iter()
            .zip(&polled)
            .filter_map(|(index, polled)| polled.revents().intersects(unread).then_some(index))
            .collect())
    }

    fn lose(&mut self, index: usize, broken: Broken) {
        let Some(mut connection) = self.connections[index].take() else {
            return;
        };
        for arrival in connection.lost() {
            self.in_flight -= 1;
            self.open.of(arrival).failed();
            self.seen.failed();
        }
        self.broken = Some(broken);
    }

    /// What has no answer by now has none.
    fn give_up(&mut self) {
        for connection in self.connections.iter_mut().flatten() {
            for arrival in connection.lost() {
                self.open.of(arrival).failed();
            }
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
