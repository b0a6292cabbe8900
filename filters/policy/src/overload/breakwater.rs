// SPDX-License-Identifier: Apache-2.0
//! Credits that hosts hand out to callers (Breakwater: Cho et al., *Overload Control for µs-scale RPCs with
//! Breakwater*, OSDI 2020).
//!
//! ```text
//!  caller: level ── request, demand ──> host: AQM ── refused ──┐
//!     ^                                  └──> application      │
//!     └── credits <── answer ── Pool::grant <──────────────────┘
//! ```
//!
//! A caller has no more requests in flight at a host than its newest credits there. The host moves the credits of all by
//! its queuing delay ([`Pool`]) and refuses what comes while the delay is twice the target ([`Params::refuses`]): callers
//! whose credits are out of date are told so at once.
//!
//! Differences from the paper, and why:
//! - every client has one credit at least. The paper's clients ask for credits by a message of their own; here credits come
//!   with answers alone, so that who has none would hear of none;
//! - a host that is known to have an idle core is open whatever the credits: hosts with idle cores refuse nothing;
//! - a client has its share of the pool at every answer, whatever the others asked for before it. By the paper's rule one
//!   that claims much takes all that falls free;
//! - the pool holds no more than the host would take before it refuses, where the reference implementation has 64 credits
//!   for each client: after an hour without a queue those would be a minute of work.

mod pool;
mod unmet;

use std::time::Duration;

pub use pool::Pool;
pub(crate) use unmet::Unmet;

use crate::feedback::HostFeedback;
use crate::{Host, Level};

/// The delay, as a multiple of the target, beyond which a host refuses (section 4.3 of the paper).
const REFUSED_BEYOND: u32 = 2;

/// How a host moves its credits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The queuing delay that is headed for.
    pub target: Duration,
    /// Credits that a round adds, for each client; one at least.
    pub alpha: f64,
    /// Share of the credits that a round takes for each target's worth of delay over the target; half of them at most.
    pub beta: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            target: TARGET,
            alpha: ALPHA,
            beta: BETA,
        }
    }
}

/// The target where nobody configures one.
pub const TARGET: Duration = Duration::from_secs(1);
/// What a round adds: the paper's own 0.1 % (section 5.1).
pub const ALPHA: f64 = 0.001;
/// What a round takes: the paper's own 2 %.
pub const BETA: f64 = 0.02;

impl Params {
    /// Whether a request that comes while others wait so long is refused.
    pub fn refuses(&self, delay: Duration) -> bool {
        delay > self.longest()
    }

    /// The longest delay at which requests are taken.
    fn longest(&self) -> Duration {
        self.target.saturating_mul(REFUSED_BEYOND)
    }
}

/// Open (everything admitted) while less is in flight there from here than the newest credits, and where these are not
/// known any more, or a core is idle.
pub(crate) fn level(
    host: &Host,
    row: &HostFeedback,
    now: Duration,
    stale_after: Duration,
) -> Level {
    let credits = row.credits;
    let fresh = credits.filter(|credits| now.saturating_sub(credits.at) <= stale_after);
    match fresh {
        Some(credits)
            if row.in_flight >= credits.count.max(1)
                && !has_idle_core(host, row, now, stale_after) =>
        {
            Level::NONE
        }
        _ => Level::ALL,
    }
}

/// Whether the host has a core that is neither in use by what it told last nor by what is in flight from here. Of a host
/// whose cores nobody has told: whether nothing waited.
fn has_idle_core(host: &Host, row: &HostFeedback, now: Duration, stale_after: Duration) -> bool {
    let load = row.load.as_ref();
    let Some(load) = load.filter(|load| !load.is_stale(now, stale_after)) else {
        return false;
    };
    let jobs = load.in_progress.max(row.in_flight);
    let has_core = host.cores().is_none_or(|cores| f64::from(jobs) < cores);
    load.queued == 0 && has_core
}

/// Credits that a host gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credits {
    pub(crate) count: u32,
    pub(crate) at: Duration,
}
