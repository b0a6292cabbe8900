// SPDX-License-Identifier: Apache-2.0
//! From what was sensed to what each core shall do and who has it. Pure.
//!
//! ```text
//!  Sensed ──> pressure ──> cores (who has which) ──> frequency (how fast) ──> raise ──> lower ──> Plan
//! ```
//! One plan a tick, so that the two policies cannot work against each other: frequency is chosen last, knowing
//! whose core it is; after it the service's cores can only be raised, and jobs' only be lowered.

use std::time::Duration;

use crate::cores::{self, CorePlan, Cores, Seen};
use crate::frequency::{Choose, Frequency, Policy};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::pressure::{self, Pressure};
use crate::sensed::{Nanos, Sensed};

/// A latency that was measured longer ago than this says nothing of the cores that the service has now.
pub const STALE: Duration = Duration::from_secs(2);

/// Turns what was sensed into a plan, tick by tick.
#[derive(Debug)]
pub struct Planner {
    node: Node,
    frequency: Option<Box<dyn Choose>>,
    cores: Option<cores::Policy>,
    pressure: Pressure,
    period: Duration,
}

impl Planner {
    /// `period` is what the plan sleeps for where no policy chooses that itself. What [`Policy::check`] refuses
    /// still gives plans, of frequencies that the cores have.
    pub fn new(node: Node, policy: Policy, period: Duration) -> Self {
        Self::with(
            node,
            Some(&policy),
            None,
            pressure::Params::default(),
            period,
        )
    }

    /// Without a frequency policy nothing is said of frequencies, without one of cores nothing of who has them.
    pub fn with(
        node: Node,
        frequency: Option<&Policy>,
        cores: Option<cores::Policy>,
        pressure: pressure::Params,
        period: Duration,
    ) -> Self {
        Self {
            frequency: frequency.map(|policy| policy.begin(&node)),
            node,
            cores,
            pressure: Pressure::new(pressure),
            period,
        }
    }

    /// The cores that are planned for.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// See [`Pressure::waits_since`].
    pub fn waits_since(&self, sensed: &Sensed) -> Option<Nanos> {
        self.pressure.waits_since(sensed.now, sensed.row.as_ref())
    }

    /// Fills in `plan`. Where cores are not divided, allocates only until the plan has room for every core.
    pub fn plan(&mut self, sensed: &Sensed, plan: &mut Plan) {
        plan.sleep = self.period;
        plan.pressed = self.pressure.look(sensed.now, sensed.row.as_ref());
        let tail = sensed.fresh_tail(STALE);
        plan.shares = self.cores.as_mut().map(|policy| {
            policy.plan(&Seen {
                now: sensed.now,
                cpu: sensed.service_cpu,
                p95: tail.map(|tail| tail.latency),
                p95_at: tail.map_or(Nanos::default(), |tail| tail.at),
                requests: tail.map_or(0, |tail| tail.requests),
                quiet: sensed.is_quiet(STALE),
                others: sensed.fresh_others(STALE),
                pressed: plan.pressed,
                jobs: sensed.jobs.clone(),
                jobs_cpu: sensed.jobs_cpu,
                elsewhere: sensed.elsewhere.clone(),
                resources: sensed.resources,
            })
        });
        let Some(frequency) = &mut self.frequency else {
            plan.cores.clear();
            return;
        };
        plan.cores.resize(self.node.cores.len(), Setting::default());
        frequency.choose(&self.node, sensed, plan);
        match &plan.shares {
            Some(CorePlan {
                service,
                speed: Some(speed),
                ..
            }) => raise(&self.node, &mut plan.cores, Some(service), *speed),
            None if plan.pressed => raise(&self.node, &mut plan.cores, None, 1.0),
            _ => {}
        }
        let jobs = plan.shares.iter().flat_map(|shares| &shares.jobs);
        for job in jobs.filter(|job| job.fast) {
            raise(&self.node, &mut plan.cores, Some(&job.cores), 1.0);
        }
        if let Some(shares) = &plan.shares
            && let Some(speed) = shares.ceilings.speed
        {
            lower(&self.node, &mut plan.cores, shares, speed);
        }
    }
}

/// Jobs' cores are at most so fast.
fn lower(node: &Node, settings: &mut [Setting], shares: &CorePlan, speed: f64) {
    for (core, setting) in node.cores.iter().zip(settings) {
        if shares.jobs.iter().any(|job| job.cores.has(core.number)) {
            let most = Frequency::Share(speed).on(&core.range);
            setting.frequency = setting.frequency.min(most);
        }
    }
}

/// Those cores, or all, are at least so fast.
fn raise(node: &Node, settings: &mut [Setting], cores: Option<&Cores>, speed: f64) {
    for (core, setting) in node.cores.iter().zip(settings) {
        if cores.is_none_or(|cores| cores.has(core.number)) {
            let least = Frequency::Share(speed).on(&core.range);
            setting.frequency = setting.frequency.max(least);
        }
    }
}

#[cfg(test)]
mod tests;
