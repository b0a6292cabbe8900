// SPDX-License-Identifier: Apache-2.0
//! More work than a fleet can do, and what overload policies make of it.
//!
//! ```text
//!  Case (phases of load) ──> Requests ──┐
//!  Way (overload policy) ──> Scenario ──┴─> simulate ──> Figures
//! ```

mod case;
mod figures;
mod requests;

pub use case::{Case, HIGH_SHARE, Phase};
pub use figures::Figures;
pub use requests::Requests;

use std::time::Duration;

use weir_executor::{Eviction, Order, Settings, Timing};
use weir_fleet::settings::{Control, Dagor};
use weir_policy::overload::breakwater;
use weir_policy::{Holding, Overload, Policy, Selection};
use weir_replay::backoff::Backoff;

use crate::scenario::{Accept, Placement, Signal, Timeouts, Zones};
use crate::{Impossible, Scenario, simulate};

/// Document 001's number of servers (section 7.1).
const HOSTS: usize = 14;
const CORES: usize = 4;

/// An overload policy and its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// What it is called.
    pub name: &'static str,
    /// Which hosts a request may go to.
    pub overload: Overload,
    /// How admission levels move.
    pub dagor: Dagor,
    /// How hosts give credits.
    pub breakwater: breakwater::Params,
    /// How long requests wait at their caller, and how many.
    pub holding: Holding,
}

impl Way {
    /// All, no control first and the control of levels that is weir-control's default last.
    #[must_use]
    pub fn all() -> [Self; 8] {
        let way = |name, overload, control| Self {
            name,
            overload,
            dagor: Dagor {
                control,
                ..Dagor::default()
            },
            breakwater: breakwater::Params::default(),
            holding: Holding::default(),
        };
        let (steady, queued_jobs) = (Control::Steady, 100);
        [
            way("none", Overload::None, steady),
            way("breaker", Overload::Breaker { queued_jobs }, steady),
            way(
                "dynamic-breaker",
                Overload::DynamicBreaker(Default::default()),
                steady,
            ),
            way("breakwater-unheld", Overload::Breakwater, steady),
            // As weir-control has it by default, and as the paper's clients, which keep requests until they have credits.
            Self {
                holding: Holding::beside(Overload::Breakwater),
                ..way("breakwater", Overload::Breakwater, steady)
            },
            way("dagor-stalled-jobs", Overload::Dagor, Control::StalledJobs),
            way("dagor-paper", Overload::Dagor, Control::Paper),
            way("dagor-steady", Overload::Dagor, Control::Steady),
        ]
    }

    /// The fleet on which ways are compared.
    #[must_use]
    pub fn scenario(&self, selection: Selection, callers: usize, seed: u64) -> Scenario {
        Scenario {
            language_model: None,
            plan: None,
            planner: None,
            signal: Signal::Jobs,
            placement: Placement::Callers,
            hosts: HOSTS,
            host: Settings {
                cores: CORES,
                // A hundred keys' data.
                cache_bytes: 2_000_000_000,
                max_queued: 10_000,
                change_log: 65_536,
                order: Order::Priority,
                eviction: Eviction::default(),
            },
            timing: Timing {
                fetch_base: Duration::from_millis(5),
                fetch_bytes_per_second: 200_000_000,
            },
            accept: Accept::AT_ONCE,
            preemption: None,
            troubles: Vec::new(),
            callers,
            heavy_caller: None,
            policy: Policy {
                selection,
                overload: self.overload,
                holding: self.holding,
                ..Policy::default()
            },
            dagor: self.dagor,
            breakwater: self.breakwater,
            cache_shards: 16,
            // Defaults of weir-control, of the filter and of weir-replay.
            poll: Duration::from_secs(1),
            publish: Duration::from_millis(20),
            report: Duration::from_millis(100),
            orca: true,
            gives_back: false,
            ejects: true,
            network: Duration::from_micros(250),
            zones: Zones::default(),
            backoff: Backoff {
                base: Duration::from_millis(100),
                cap: Duration::from_secs(10),
            },
            attempts: u32::MAX,
            timeouts: Timeouts {
                deadline: Duration::from_secs(15),
                connect: None,
                read: None,
                queue: None,
            },
            seed,
        }
    }
}

/// Plays a case on a fleet.
///
/// # Errors
/// The scenario cannot be.
pub fn play(case: &Case, scenario: &Scenario) -> Result<Figures, Impossible> {
    let cores = scenario.hosts * scenario.host.cores;
    let requests = Requests::new(case, cores, scenario.seed);
    let keys = Requests::keys();
    let mut figures = Figures::new(case, cores);
    let levels = simulate(scenario, &keys, requests, |ended| figures.add(&ended))?;
    figures.reversals =
        levels.reversals as f64 / scenario.hosts as f64 / case.lasts().as_secs_f64() * 3600.0;
    Ok(figures)
}
