// SPDX-License-Identifier: Apache-2.0
//! What a registry says of a cluster's hosts.

use std::sync::Arc;

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
