// SPDX-License-Identifier: Apache-2.0
//! How far a long run is, on stderr.

use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(5);

pub(super) struct Progress {
    name: String,
    lasts: Duration,
    began: Instant,
    said: Instant,
    requests: u64,
}

impl Progress {
    /// Of requests that come for so long; the name goes before.
    pub(super) fn new(name: String, lasts: Duration) -> Self {
        let now = Instant::now();
        Self {
            name,
            lasts,
            began: now,
            said: now,
            requests: 0,
        }
    }

    /// A request has ended that came at this time.
    pub(super) fn see(&mut self, at: Duration) {
        self.requests += 1;
        if self.requests.is_multiple_of(1024) && self.said.elapsed() >= EVERY {
            self.said = Instant::now();
            let percent = 100.0 * at.as_secs_f64() / self.lasts.as_secs_f64();
            let (name, rate) = (&self.name, self.rate());
            eprintln!("{name}SIMULATED {percent:.0} %, {rate:.0} requests a second");
        }
    }

    pub(super) fn end(self) {
        let (requests, rate) = (self.requests, self.rate());
        eprintln!("SIMULATED: {requests} requests, {rate:.0} a second");
    }

    fn rate(&self) -> f64 {
        self.requests as f64 / self.began.elapsed().as_secs_f64()
    }
}
