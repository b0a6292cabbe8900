// SPDX-License-Identifier: Apache-2.0
//! What a registry says of a cluster's hosts.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;

use weir_fleet::poll::{PollError, Source};

use crate::config::{Host, Registry};

/// What a registry said to one question.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Of which cluster.
    pub cluster: Arc<str>,
    /// Who was asked, and how.
    pub registry: Registry,
    /// What it said.
    pub said: Said,
}

/// What a registry said.
#[derive(Clone, Debug)]
pub enum Said {
    /// Who is there.
    Hosts(Result<Found, PollError>),
    /// In which trust domain.
    TrustDomain(Result<String, PollError>),
}

/// What an answer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Those that take requests, sorted by address, no address twice.
    pub hosts: Vec<Host>,
    /// What is wrong with the answer or the registrations.
    pub complaints: Vec<String>,
    /// Instances in the answer, whatever they are like.
    pub instances: usize,
}

/// Times to wait, which tests shorten.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For an answer, beside what the question itself waits.
    pub answer: Duration,
    /// Between the beginnings of two questions, however fast there is news.
    pub between: Duration,
    /// Instead of that where there is nothing to wait for: Consul tells no index, or a watch ends at once.
    pub aimless: Duration,
    /// At most, after a first failure.
    pub first_retry: Duration,
    /// At most, after many.
    pub last_retry: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(10),
            // A deployment changes a registration a hundred times a second; tables are built at this pace as well.
            between: Duration::from_millis(100),
            aimless: Duration::from_secs(1),
            first_retry: Duration::from_millis(100),
            last_retry: Duration::from_secs(10),
        }
    }
}

impl Patience {
    /// How long to wait after so many failures in a row. With full jitter: a fleet that was cut off
    /// does not come back at once (Brooker, "Exponential Backoff And Jitter", 2015).
    pub(crate) fn retry(&self, failures: u32) -> Duration {
        let share = rand::rng().random_range(0.0..=1.0);
        self.longest_retry(failures).mul_f64(share)
    }

    pub(super) fn longest_retry(&self, failures: u32) -> Duration {
        let factor = 1u32
            .checked_shl(failures.saturating_sub(1))
            .unwrap_or(u32::MAX);
        self.first_retry.saturating_mul(factor).min(self.last_retry)
    }
}

/// Text of others is cut to so many bytes where it is shown.
const SHORT: usize = 200;

/// Text of others, not for ever.
pub(crate) fn cut(text: &str) -> String {
    match text.floor_char_boundary(SHORT) {
        end if end < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

/// A name that others gave, so that nothing in it is taken for our words.
pub(crate) fn short(text: &str) -> String {
    format!("{:?}", cut(text))
}

/// Complaints that a reader can take in.
pub(super) const MOST_SHOWN: usize = 20;

/// What is wrong with an answer: the first ones, and how many more.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    shown: Vec<String>,
    more: usize,
}

impl Complaints {
    pub(super) fn add(&mut self, complaint: String) {
        match self.shown.len() < MOST_SHOWN {
            true => self.shown.push(complaint),
            false => self.more += 1,
        }
    }

    pub(super) fn all(mut self) -> Vec<String> {
        if self.more > 0 {
            self.shown.push(format!("and {} more", self.more));
        }
        self.shown
    }
}

impl Answered {
    /// The question.
    pub fn source(&self) -> Source {
        match self.said {
            Said::Hosts(_) => self.registry.source(),
            Said::TrustDomain(_) => Source::ConsulRoots,
        }
    }
}
