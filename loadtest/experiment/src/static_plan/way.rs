// SPDX-License-Identifier: Apache-2.0
//! The plans that are played, and the core of each node.

use serde::Serialize;

/// Which order jobs have, and which cores nodes have.
#[derive(Clone, Copy, Debug, clap::ValueEnum, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Document 004's order.
    Document,
    /// As document, and a job of each job node also waits for one of the other.
    Across,
    /// As across, with memcached's core to itself and both job nodes on the other.
    Apart,
    /// As document without any order: all jobs at once.
    AtOnce,
}

/// Memcached's node, and those of the jobs, as document 004 and the simulator name them by their cores there.
pub const NODES: [&str; 3] = [SERVICE, "four", "eight"];
/// Memcached's.
pub const SERVICE: &str = "two";

/// A job of the plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// Its name, one of document 004's.
    pub job: &'static str,
    /// Its node.
    pub node: &'static str,
    /// Jobs that have to end before.
    pub after: &'static [&'static str],
}

const fn step(job: &'static str, node: &'static str, after: &'static [&'static str]) -> Step {
    Step { job, node, after }
}

/// Of document 004, part 3.2.
const DOCUMENT: [Step; 6] = [
    step("ferret", "four", &[]),
    step("dedup", "four", &["ferret"]),
    step("freqmine", "eight", &[]),
    step("blackscholes", "eight", &["freqmine"]),
    step("fft", "eight", &["freqmine"]),
    step("canneal", "eight", &["blackscholes"]),
];
/// Of our own: what else must have ended, on the other node.
const ACROSS: [(&str, &[&str]); 2] = [
    ("dedup", &["ferret", "fft"]),
    ("canneal", &["blackscholes", "ferret"]),
];

impl Way {
    /// The plan.
    #[must_use]
    pub fn steps(self) -> Vec<Step> {
        let after = |step: Step| match self {
            Self::AtOnce => &[],
            Self::Document => step.after,
            Self::Across | Self::Apart => ACROSS
                .iter()
                .find_map(|(job, after)| (*job == step.job).then_some(*after))
                .unwrap_or(step.after),
        };
        DOCUMENT
            .map(|step| Step {
                after: after(step),
                ..step
            })
            .to_vec()
    }

    /// The one core of a node: this machine has two, and document 004's nodes have fourteen.
    #[must_use]
    pub fn core(self, node: &str) -> u32 {
        match (self, node) {
            (_, SERVICE) => 0,
            (Self::Apart, _) | (_, "eight") => 1,
            _ => 0,
        }
    }
}

/// The node of a job.
#[must_use]
pub fn node_of(job: &str) -> Option<&'static str> {
    let step = DOCUMENT.iter().find(|step| step.job == job);
    step.map(|step| step.node)
}

/// When each job of the plan would end if it had its share of its core, and nobody else were there: `work` is its CPU
/// time. Jobs of one core share it evenly.
#[must_use]
pub fn ends(way: Way, work: &dyn Fn(&str) -> f64) -> Vec<f64> {
    let steps = way.steps();
    let mut left: Vec<f64> = steps.iter().map(|step| work(step.job)).collect();
    let mut ends: Vec<Option<f64>> = vec![None; steps.len()];
    let mut now = 0.0;
    while ends.iter().any(Option::is_none) {
        let has_ended = |job: &&str| {
            let mut all = steps.iter().zip(&ends);
            all.any(|(step, end)| step.job == *job && end.is_some())
        };
        let runs =
            |index: &usize| ends[*index].is_none() && steps[*index].after.iter().all(has_ended);
        let running: Vec<usize> = (0..steps.len()).filter(runs).collect();
        let beside = |index: usize| {
            let core = |index: &usize| way.core(steps[*index].node);
            let same = |other: &&usize| core(other) == core(&index);
            running.iter().filter(same).count() as f64
        };
        let until = |index: &usize| left[*index] * beside(*index);
        let next = running.iter().map(until).fold(f64::INFINITY, f64::min);
        let shares: Vec<f64> = running.iter().map(|index| next / beside(*index)).collect();
        now += next;
        for (index, share) in running.into_iter().zip(shares) {
            left[index] -= share;
            // What is left of a share is rounding.
            if left[index] < 1e-9 {
                ends[index] = Some(now);
            }
        }
    }
    ends.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn after(way: Way, job: &str) -> &'static [&'static str] {
        let steps = way.steps();
        steps.iter().find(|step| step.job == job).unwrap().after
    }

    #[test]
    fn jobs_of_both_nodes_wait_for_one_of_the_other_only_where_the_way_says_so() {
        let is_across = |step: &Step| {
            let far = |job: &&str| node_of(job) != Some(step.node);
            step.after.iter().any(far)
        };
        for way in Way::value_variants() {
            let across: Vec<&str> = way
                .steps()
                .iter()
                .filter(|step| is_across(step))
                .map(|step| step.node)
                .collect();
            let wanted: &[&str] = match way {
                Way::Across | Way::Apart => &["four", "eight"],
                _ => &[],
            };
            assert_eq!(across, wanted, "{way:?}");
        }
        assert_eq!(after(Way::AtOnce, "canneal"), [""; 0]);
        assert_eq!(after(Way::Document, "canneal"), ["blackscholes"]);
    }

    #[test]
    fn a_core_is_shared_by_its_jobs_and_a_job_waits_for_its_own() {
        // In the order of the steps.
        let of = |way| ends(way, &|job| if job == "ferret" { 10.0 } else { 1.0 });
        assert_eq!(of(Way::Document), [10.0, 11.0, 1.0, 3.0, 3.0, 4.0]);
        assert_eq!(of(Way::Across), [10.0, 11.0, 1.0, 3.0, 3.0, 11.0]);
        assert_eq!(of(Way::AtOnce), [11.0, 2.0, 4.0, 4.0, 4.0, 4.0]);
        // All of it on one core.
        assert_eq!(of(Way::Apart).into_iter().fold(0.0, f64::max), 15.0);
    }
}
