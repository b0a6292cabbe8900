// SPDX-License-Identifier: Apache-2.0
//! By how much each core has been used lately: the kernel's `schedutil` governor in software, to compare with. Most
//! distributions have it by default where the driver leaves the choice to the kernel.
//!
//! The rule is `get_next_freq` of Linux' `kernel/sched/cpufreq_schedutil.c`: 1.25 · highest frequency · utilisation,
//! rounded up to what the driver has. Utilisation is that of `kernel/sched/pelt.c`: time in which the core ran counts
//! as much as its frequency is of the highest, a past millisecond counts half of one 32 ms later, and time passes as
//! slowly as work does while the core runs (`update_rq_clock_pelt`), until it is idle.
//!
//! Without what the kernel knows of tasks: their utilisation when they last slept (`util_est`, which raises the
//! frequency at once when they wake), boosts after waiting for disks, and real-time tasks.

use std::time::Duration;

use crate::frequency::{Choose, Khz, Parameters, Wrong, online};
use crate::node::{Node, NodeCore};
use crate::plan::{Plan, Setting};
use crate::sensed::{Nanos, Sensed};

/// Of the highest frequency, at a utilisation of 1: 0.8 is enough for the highest.
const HEADROOM: f64 = 1.25;
/// After so much time what has been counts half. In seconds.
const HALF_LIFE_S: f64 = 0.032;

/// The kernel's tunable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedutil {
    /// Between two changes, `rate_limit_us`; also what the plan sleeps for. The kernel takes the driver's word
    /// (`cpufreq_policy_transition_delay_us`): of acpi-cpufreq that came to 10 ms, later to 2 ms.
    pub rate_limit: Duration,
}

impl Default for Schedutil {
    fn default() -> Self {
        Self {
            rate_limit: Duration::from_millis(2),
        }
    }
}

impl Parameters for Schedutil {
    fn check(&self, _: &Node) -> Result<(), Wrong> {
        match self.rate_limit.is_zero() {
            true => Err(Wrong::new("rate_limit", "must not be 0")),
            false => Ok(()),
        }
    }

    fn begin(&self, node: &Node) -> Box<dyn Choose> {
        let first = |core: &NodeCore| Used {
            utilisation: 0.0,
            frequency: core.range.min,
        };
        Box::new(Following {
            parameters: *self,
            cores: node.cores.iter().map(first).collect(),
            last: None,
        })
    }
}

#[derive(Debug)]
struct Following {
    parameters: Schedutil,
    cores: Vec<Used>,
    last: Option<Nanos>,
}

/// How much a core has been used.
#[derive(Clone, Copy, Debug)]
struct Used {
    utilisation: f64,
    frequency: Khz,
}

impl Choose for Following {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        plan.sleep = self.parameters.rate_limit;
        // The first reading of how busy a core was is over an unknown time: one period.
        let last = self.last.replace(sensed.now);
        let elapsed = last.map_or(plan.sleep, |last| sensed.now.since(last));
        for (position, range, seen, setting) in online(node, sensed, plan) {
            let Some(core) = self.cores.get_mut(position) else {
                continue;
            };
            let speed = f64::from(core.frequency.0) / f64::from(range.max.0.max(1));
            core.utilisation = after(core.utilisation, seen.load(), elapsed.as_secs_f64(), speed);
            let wanted = HEADROOM * core.utilisation * f64::from(range.max.0);
            core.frequency = range.at_least(Khz(wanted as u32));
            *setting = Setting {
                frequency: core.frequency,
                rung: 0,
            };
        }
    }
}

/// Utilisation after so many seconds, of which the core ran a share, at this share of its highest speed: first it was
/// idle, then it ran.
fn after(utilisation: f64, share: f64, seconds: f64, speed: f64) -> f64 {
    let kept = |seconds: f64| (-seconds / HALF_LIFE_S).exp2();
    let work = seconds * share * speed;
    // A core that was idle at all has caught up with the clock.
    let idle = if share < 1.0 { seconds - work } else { 0.0 };
    let ran = kept(work);
    utilisation * kept(idle) * ran + (1.0 - ran)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::Policy;
    use crate::frequency::tests::{NOW, cold, node};
    use crate::planner::Planner;
    use crate::sensed::Core;

    /// One core, looked at every millisecond, in GHz.
    fn follow(busy: impl Iterator<Item = f64>) -> Vec<f64> {
        let schedutil = Schedutil {
            rate_limit: Duration::from_millis(1),
        };
        let mut planner = Planner::new(node(1), Policy::Schedutil(schedutil), Duration::MAX);
        let mut plan = Plan::default();
        let look = |(tick, busy): (u64, f64)| {
            let sensed = Sensed {
                now: Nanos(NOW.0 + tick * 1_000_000),
                cores: vec![Core { busy, ..cold() }],
                ..Sensed::default()
            };
            planner.plan(&sensed, &mut plan);
            f64::from(plan.cores[0].frequency.0) / 1e6
        };
        (0..).zip(busy).map(look).collect()
    }

    #[test]
    fn utilisation_halves_in_32_ms_and_half_use_is_a_half() {
        assert!((after(0.8, 0.0, 0.032, 1.0) - 0.4).abs() < 1e-12);
        assert!((after(0.0, 1.0, 0.032, 1.0) - 0.5).abs() < 1e-12);
        assert!(
            (after(0.0, 1.0, 0.064, 0.5) - 0.5).abs() < 1e-12,
            "work counts, not time"
        );
        let settled = (0..1_000).fold(0.0, |used, _| after(used, 0.5, 0.001, 1.0));
        assert!((settled - 0.5).abs() < 0.01, "{settled}");
    }

    #[test]
    fn a_core_that_runs_on_gets_faster_and_one_that_rests_slower() {
        let seen = follow(std::iter::repeat_n(1.0, 300).chain(std::iter::repeat_n(0.0, 100)));
        assert_eq!((seen[0], seen[299], seen[399]), (1.0, 2.6, 1.0));
        assert!(seen[..300].is_sorted(), "{seen:?}");
        // 0.8 is enough for the highest: from 1.0 GHz on that takes longer than two half-lives.
        let highest = seen.iter().position(|ghz| *ghz == 2.6).unwrap();
        assert!((75..=200).contains(&highest), "{highest} ms");
    }
}
