// SPDX-License-Identifier: Apache-2.0
//! Figures of a host, with when they were true and where they come from.

use std::time::Duration;

use crate::figures::Figures;

/// Figures and when they were true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The figures.
    pub figures: Figures,
    /// On the state's clock.
    pub at: Duration,
    /// When the queuing delay was true: it may be older than the rest.
    pub delay_at: Duration,
    /// Who told.
    pub from: From,
}

/// Where figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The host's own page.
    Scrape,
    /// An answer of the host, reported by a proxy.
    Report,
    /// A Prometheus server.
    Prometheus,
    /// What all proxies say they have under way there, added to what the host told last.
    Callers,
}

impl From {
    /// Its name in `/tables` and `/explain`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scrape => "scrape",
            Self::Report => "report",
            Self::Prometheus => "prometheus",
            Self::Callers => "callers",
        }
    }
}

impl Observed {
    /// When what tells overload was true: the queuing delay where there is one, else the queue.
    pub fn overload_at(&self) -> Duration {
        match self.figures.queuing_delay {
            Some(_) => self.delay_at,
            None => self.at,
        }
    }
}
