// SPDX-License-Identifier: Apache-2.0
//! The requests that a host admits.

pub mod breaker;
pub mod breakwater;
pub mod dagor;
mod demand;
pub mod dynamic_breaker;
mod evidence;
mod moving_level;
mod slots;
pub mod steady;

use std::time::Duration;

use crate::every;
use crate::feedback::HostFeedback;
use crate::outlook::Outlook;
use crate::{Host, Level};

pub use moving_level::MovingLevel;

/// The overload policies (document 001, *Scheduling data feed processing jobs*, section 9.1; Breakwater).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// Every host that is up admits everything.
    None,
    /// A host with more than this many queued jobs admits nothing.
    Breaker {
        /// Jobs queued, all classes together.
        queued_jobs: u32,
    },
    /// The same, but the number of queued jobs falls as jobs wait longer.
    DynamicBreaker(dynamic_breaker::Params),
    /// A host admits what its level says, which weir-control adjusts with [`steady::Controller`] or
    /// [`dagor::step`].
    Dagor,
    /// A host admits as many requests at a time as it has given credits for ([`breakwater::Pool`]).
    Breakwater,
    /// A host admits requests while it has an idle core; the others wait at their callers (delay scheduling, with
    /// [`crate::Holding`]).
    Slots,
}

impl Overload {
    /// Every policy, with the defaults of its parameters.
    pub const ALL: [Self; 6] = every![
        None,
        Breaker {
            queued_jobs: breaker::QUEUED_JOBS
        },
        DynamicBreaker(dynamic_breaker::Params::DEFAULT),
        Dagor,
        Breakwater,
        Slots,
    ];

    /// Its name in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Breaker { .. } => "breaker",
            Self::DynamicBreaker(_) => "dynamic_breaker",
            Self::Dagor => "dagor",
            Self::Breakwater => "breakwater",
            Self::Slots => "slots",
        }
    }

    /// Whether what is in flight at a host moves its level.
    pub(crate) fn counts_in_flight(self) -> bool {
        matches!(self, Self::Breakwater | Self::Slots)
    }

    /// Whether it goes by what is expected of each request.
    pub(crate) fn estimates(self) -> bool {
        matches!(self, Self::Slots)
    }

    /// The level of a host that is up, from its row and what is known of it here. Load older than `stale_after`
    /// never closes a host: not to know is not to be overloaded. What is ahead of a request is asked only where that
    /// counts.
    pub(crate) fn level(
        self,
        host: &Host,
        known: &HostFeedback,
        outlook: impl FnOnce() -> Option<Outlook>,
        now: Duration,
        stale_after: Duration,
    ) -> Level {
        let load = known.load.as_ref();
        let load = load.filter(|load| !load.is_stale(now, stale_after));
        match self {
            Self::None => Level::ALL,
            Self::Breaker { queued_jobs } => breaker::level(load, queued_jobs),
            Self::DynamicBreaker(params) => dynamic_breaker::level(load, &params),
            // weir-control opens the level of a host whose figures it has lost, so the row is believed.
            Self::Dagor => host.level,
            Self::Breakwater => breakwater::level(host, known, now, stale_after),
            Self::Slots => slots::level(known, load, outlook()),
        }
    }
}
