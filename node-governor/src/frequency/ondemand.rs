// SPDX-License-Identifier: Apache-2.0
//! By how busy each core has been: the kernel's `ondemand` governor in software, to compare with.
//!
//! The rule and the defaults are those of Linux: `Documentation/admin-guide/pm/cpufreq.rst`, section "ondemand",
//! and `od_update` in `drivers/cpufreq/cpufreq_ondemand.c`. Without `powersave_bias`, `ignore_nice_load` and
//! `io_is_busy`; and without the kernel's memory of the load before a long sleep, which it has because its timer
//! does not wake an idle core: here every period is looked at.

use std::time::Duration;

use crate::frequency::{Choose, Khz, Parameters, Wrong, online};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::{Nanos, Sensed};

/// The kernel's tunables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ondemand {
    /// Between two looks; also what the plan sleeps for. The kernel takes a thousand times the driver's latency of
    /// a change, which is 10 µs with acpi-cpufreq on the machine of Medeiros, section 4.1.
    pub sampling_period: Duration,
    /// A core busier than this is set to its highest frequency; 0 to 1. The kernel takes 0.95 where it accounts
    /// idle time finely, as any with `CONFIG_NO_HZ` does, and 0.8 elsewhere.
    pub up_threshold: f64,
    /// So many periods pass before a core that has just been set to its highest is looked at again.
    pub sampling_down_factor: u32,
}

impl Default for Ondemand {
    fn default() -> Self {
        Self {
            sampling_period: Duration::from_millis(10),
            up_threshold: 0.95,
            sampling_down_factor: 1,
        }
    }
}

impl Parameters for Ondemand {
    fn check(&self, _: &Node) -> Result<(), Wrong> {
        if self.sampling_period.is_zero() {
            return Err(Wrong::new("sampling_period", "must not be 0"));
        }
        if !(0.01..=1.0).contains(&self.up_threshold) {
            return Err(Wrong::new("up_threshold", "must be from 0.01 to 1"));
        }
        if !(1..=100_000).contains(&self.sampling_down_factor) {
            return Err(Wrong::new(
                "sampling_down_factor",
                "must be from 1 to 100000",
            ));
        }
        Ok(())
    }

    fn begin(&self, node: &Node) -> Box<dyn Choose> {
        let first = |core: &crate::node::NodeCore| Sample {
            frequency: core.range.min,
            periods: 1,
            ..Sample::default()
        };
        Box::new(Sampling {
            parameters: *self,
            samples: node.cores.iter().map(first).collect(),
            last: None,
        })
    }
}

#[derive(Debug)]
struct Sampling {
    parameters: Ondemand,
    samples: Vec<Sample>,
    last: Option<Nanos>,
}

/// A core's work since it was looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    elapsed: Duration,
    busy: Duration,
    periods: u32,
    frequency: Khz,
}

impl Choose for Sampling {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        let Ondemand {
            sampling_period,
            up_threshold,
            sampling_down_factor,
        } = self.parameters;
        plan.sleep = sampling_period;
        // The first reading of how busy a core was is over an unknown time: one period.
        let last = self.last.replace(sensed.now);
        let elapsed = last.map_or(sampling_period, |last| sensed.now.since(last));
        for (position, range, seen, setting) in online(node, sensed, plan) {
            let Some(sample) = self.samples.get_mut(position) else {
                continue;
            };
            sample.elapsed += elapsed;
            sample.busy += elapsed.mul_f64(seen.load());
            // A tick that wakes up sooner after its time than the one before is a little shorter.
            let slack = sampling_period / 10;
            if sample.elapsed + slack >= sampling_period * sample.periods {
                let load = sample.busy.as_secs_f64() / sample.elapsed.as_secs_f64().max(1e-9);
                (sample.frequency, sample.periods) = if load > up_threshold {
                    let stays = sample.frequency == range.max;
                    let periods = if stays {
                        sample.periods
                    } else {
                        sampling_down_factor
                    };
                    (range.max, periods)
                } else {
                    let width = f64::from(range.max.0.saturating_sub(range.min.0));
                    let wanted = range.min.0 + (load * width) as u32;
                    (range.closest(Khz(wanted)), 1)
                };
                sample.elapsed = Duration::ZERO;
                sample.busy = Duration::ZERO;
            }
            *setting = Setting {
                frequency: sample.frequency,
                rung: 0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::Policy;
    use crate::frequency::tests::{NOW, cold, node};
    use crate::planner::Planner;
    use crate::sensed::Core;

    /// One core, looked at every 10 ms, in GHz.
    fn follow(ondemand: Ondemand, busy: &[f64]) -> Vec<f64> {
        let mut planner = Planner::new(node(1), Policy::Ondemand(ondemand), Duration::MAX);
        let mut plan = Plan::default();
        let look = |(tick, busy): (u64, &f64)| {
            let sensed = Sensed {
                now: Nanos(NOW.0 + tick * 10_000_000),
                cores: vec![Core {
                    busy: *busy,
                    ..cold()
                }],
                ..Sensed::default()
            };
            planner.plan(&sensed, &mut plan);
            assert_eq!(plan.sleep, ondemand.sampling_period);
            f64::from(plan.cores[0].frequency.0) / 1e6
        };
        (0..).zip(busy).map(look).collect()
    }

    #[test]
    fn it_is_fastest_over_the_threshold_and_in_proportion_below() {
        let seen = follow(Ondemand::default(), &[0.0, 0.96, 0.95, 0.5, 0.1]);
        assert_eq!(seen, [1.0, 2.6, 2.6, 1.8, 1.2]);
    }

    #[test]
    fn a_core_that_became_fastest_is_left_alone_for_a_while() {
        let patient = Ondemand {
            sampling_down_factor: 3,
            ..Ondemand::default()
        };
        let seen = follow(patient, &[1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(seen, [2.6, 2.6, 2.6, 1.0, 1.0]);
    }

    #[test]
    fn a_tick_that_is_a_little_short_is_a_whole_one() {
        let period = Duration::from_micros(10_100);
        let ondemand = Ondemand {
            sampling_period: period,
            ..Ondemand::default()
        };
        let seen = follow(ondemand, &[0.0, 1.0, 0.5, 1.0]);
        assert_eq!(seen, [1.0, 2.6, 1.8, 2.6]);
    }

    #[test]
    fn looks_in_between_change_nothing_but_are_counted() {
        let slow = Ondemand {
            sampling_period: Duration::from_millis(20),
            ..Ondemand::default()
        };
        let seen = follow(slow, &[0.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(seen, [1.0, 1.0, 2.6, 2.6, 1.8]);
    }
}
