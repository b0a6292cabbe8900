// SPDX-License-Identifier: Apache-2.0
//! The requests that a host admits.

pub mod breaker;
pub mod dagor;
mod demand;
pub mod dynamic_breaker;
mod evidence;
mod moving_level;
pub mod steady;

use std::time::Duration;

use crate::every;
use crate::{Host, Level, Load};

pub use moving_level::MovingLevel;

/// The overload policies (document 001, *Scheduling data feed processing jobs*, section 9.1).
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
}

impl Overload {
    /// Every policy, with the defaults of its parameters.
    pub const ALL: [Self; 4] = every![
        None,
        Breaker {
            queued_jobs: breaker::QUEUED_JOBS
        },
        DynamicBreaker(dynamic_breaker::Params::DEFAULT),
        Dagor,
    ];

    /// Its name in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Breaker { .. } => "breaker",
            Self::DynamicBreaker(_) => "dynamic_breaker",
            Self::Dagor => "dagor",
        }
    }

    /// The level of a host that is up, from its row and its newest load. Load older than `stale_after`
    /// never closes a host: not to know is not to be overloaded.
    pub(crate) fn level(
        self,
        host: &Host,
        load: Option<&Load>,
        now: Duration,
        stale_after: Duration,
    ) -> Level {
        let load = load.filter(|load| !load.is_stale(now, stale_after));
        match self {
            Self::None => Level::ALL,
            Self::Breaker { queued_jobs } => breaker::level(load, queued_jobs),
            Self::DynamicBreaker(params) => dynamic_breaker::level(load, &params),
            // weir-control opens the level of a host whose figures it has lost, so the row is believed.
            Self::Dagor => host.level,
        }
    }
}
