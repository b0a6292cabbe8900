// SPDX-License-Identifier: Apache-2.0
//! How requests are sent, and the bounds of what that takes.

use std::time::Duration;

use anyhow::{Result, ensure};

/// Keys that are asked for and not answered: each takes up to 35 bytes until then.
const MOST_KEYS: u64 = 10_000_000;

/// How requests are sent.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Connections, asked in turn.
    pub connections: u32,
    /// Keys of each request, drawn uniformly.
    pub keys_per_get: u32,
    /// Requests that may wait for their answers; those due beyond are dropped. Bounds memory.
    pub in_flight: u32,
    /// For answers, after the last request was due. What has none then counts as an error.
    pub patience: Duration,
}

impl Way {
    /// # Errors
    /// A number is out of its range.
    pub fn check(&self) -> Result<()> {
        for (name, number, most) in [
            ("connections", self.connections, 1_000),
            ("keys-per-get", self.keys_per_get, 1_000),
            ("in-flight", self.in_flight, 1_000_000),
        ] {
            ensure!(
                (1..=most).contains(&number),
                "{name}: {number} is not between 1 and {most}"
            );
        }
        let keys = u64::from(self.in_flight) * u64::from(self.keys_per_get);
        ensure!(
            keys <= MOST_KEYS,
            "in-flight: {} requests of {} keys each are {keys} keys, and {MOST_KEYS} may wait at once",
            self.in_flight,
            self.keys_per_get
        );
        Ok(())
    }
}
