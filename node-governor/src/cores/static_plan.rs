// SPDX-License-Identifier: Apache-2.0
//! Jobs on nodes, cores and threads that were written down, each after others: a small dependency graph.
//!
//! Part 3 of document 004 (*Cloud Computing Architecture*, semester project report): "a static scheduler with
//! conditions on when the previous job were to finish". A job that failed counts as ended, so that it does not
//! stop the rest. Jobs that may run at the same time can share cores; none shares the service's.
//!
//! Of our own: a job may wait for one of another node, whose governor is asked. Its silence starts nothing and stops
//! nothing: a job that waits goes on waiting, and one that has started goes on, as where this governor begins anew.

use super::places::act;
use super::{CorePlan, Cores, JobPlan, Reason, Refused, Seen, check_cores, check_jobs};
use crate::jobs::{Job, State};

/// Where and when one job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name of the job.
    pub job: String,
    /// Name of the node.
    pub node: String,
    /// On these of the node's cores.
    pub cores: Cores,
    /// Names of jobs that must have ended.
    pub after: Vec<String>,
}

/// A node of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNode {
    /// Its name.
    pub name: String,
    /// All its cores.
    pub cores: Cores,
    /// The service's; none where it does not live there.
    pub service: Cores,
}

/// The whole plan, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// All of them.
    pub nodes: Vec<PlanNode>,
    /// One for each job.
    pub steps: Vec<Step>,
    /// Jobs of other nodes that steps wait for, of a plan that has the steps of one node alone.
    pub elsewhere: Vec<String>,
}

impl Params {
    /// # Errors
    /// A node has no cores, the service or a step wants cores that the node does not have, a step shares the
    /// service's cores, names a job or node that is not there, or waits for itself; or a job has no step or two.
    pub fn check(&self, jobs: &[Job]) -> Result<(), Refused> {
        check_jobs(jobs)?;
        for node in &self.nodes {
            let field = format!("nodes.{}", node.name);
            check_cores(&format!("{field}.cores"), &node.cores, &node.cores)?;
            if !node.service.is_empty() {
                check_cores(&format!("{field}.service"), &node.service, &node.cores)?;
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            self.check_step(step, jobs)?;
            if self.steps[..index]
                .iter()
                .any(|other| other.job == step.job)
            {
                return Err(Refused::new(
                    format!("steps.{}", step.job),
                    "is there twice",
                ));
            }
        }
        if let Some(job) = jobs.iter().find(|job| self.step(&job.name).is_none()) {
            return Err(Refused::new("steps", format!("{} has none", job.name)));
        }
        self.check_cycles()
    }

    fn check_step(&self, step: &Step, jobs: &[Job]) -> Result<(), Refused> {
        let field = format!("steps.{}", step.job);
        if !jobs.iter().any(|job| job.name == step.job) {
            return Err(Refused::new(field, "there is no such job"));
        }
        let Some(node) = self.nodes.iter().find(|node| node.name == step.node) else {
            let reason = format!("there is no node {:?}", step.node);
            return Err(Refused::new(format!("{field}.node"), reason));
        };
        let in_cores = format!("{field}.cores");
        check_cores(&in_cores, &step.cores, &node.cores)?;
        let shared = step.cores.shared(&node.service);
        if !shared.is_empty() {
            return Err(Refused::new(in_cores, format!("{shared}: the service's")));
        }
        for before in &step.after {
            if self.step(before).is_none() && !self.elsewhere.contains(before) {
                let reason = format!("{before}: there is no such step");
                return Err(Refused::new(format!("{field}.after"), reason));
            }
        }
        Ok(())
    }

    fn step(&self, job: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.job == job)
    }

    /// Takes away steps that wait for none of those left, until that ends.
    fn check_cycles(&self) -> Result<(), Refused> {
        let mut left: Vec<&Step> = self.steps.iter().collect();
        loop {
            let names: Vec<&str> = left.iter().map(|step| step.job.as_str()).collect();
            let waits = |step: &&Step| step.after.iter().any(|job| names.contains(&job.as_str()));
            let waiting: Vec<&Step> = left.iter().copied().filter(waits).collect();
            if waiting.is_empty() {
                return Ok(());
            }
            if waiting.len() == left.len() {
                return Err(Refused::new("steps", cycle(&left)));
            }
            left = waiting;
        }
    }
}

/// Every one of `steps` waits for another of them: following that leads round.
fn cycle(steps: &[&Step]) -> String {
    let mut path: Vec<&str> = Vec::new();
    let mut at = steps[0];
    while !path.contains(&at.job.as_str()) {
        path.push(&at.job);
        let next = steps.iter().find(|step| at.after.contains(&step.job));
        let Some(next) = next else { break };
        at = next;
    }
    let start = path.iter().position(|job| *job == at.job).unwrap_or(0);
    let round = path[start..].join(" after ");
    format!("{round} after {}: a circle", at.job)
}

/// The plan on one node.
#[derive(Debug)]
pub struct StaticPlan {
    service: Cores,
    jobs: Vec<Job>,
    /// By job; none where it runs on another node.
    steps: Vec<Option<Here>>,
}

/// A job of this node.
#[derive(Debug)]
struct Here {
    cores: Cores,
    /// Whom it waits for, by number.
    after: Vec<usize>,
    /// The same, of [`Params::elsewhere`].
    elsewhere: Vec<usize>,
}

impl Here {
    /// Whether the job, which is as far as this, may have its cores.
    fn is_ready(&self, state: State, seen: &Seen) -> bool {
        // One that has started found it ended, unless it says otherwise now.
        let unknown = state != State::Waiting;
        let elsewhere = |before: &usize| seen.elsewhere(*before).unwrap_or(unknown);
        let here = |before: &usize| seen.job(*before).has_ended();
        self.after.iter().all(here) && self.elsewhere.iter().all(elsewhere)
    }
}

impl StaticPlan {
    /// `node` is where this governor runs. `jobs` are all that have a step.
    ///
    /// # Errors
    /// As [`Params::check`], or there is no such node.
    pub fn new(params: &Params, node: &str, jobs: &[Job]) -> Result<Self, Refused> {
        params.check(jobs)?;
        let absent = || Refused::new("node", format!("{node:?} is none of the plan"));
        let here = params.nodes.iter().find(|one| one.name == node);
        let here = here.ok_or_else(absent)?;
        let index = |name: &String| jobs.iter().position(|job| job.name == *name);
        let far = |name: &String| params.elsewhere.iter().position(|job| job == name);
        let of = |job: &Job| {
            let step = params.step(&job.name).filter(|step| step.node == node)?;
            Some(Here {
                cores: step.cores.clone(),
                after: step.after.iter().filter_map(index).collect(),
                elsewhere: step.after.iter().filter_map(far).collect(),
            })
        };
        Ok(Self {
            service: here.service.clone(),
            jobs: jobs.to_vec(),
            steps: jobs.iter().map(of).collect(),
        })
    }

    pub(super) fn plan(&mut self, seen: &Seen) -> CorePlan {
        let of = |(index, job): (usize, &Job)| {
            let state = seen.job(index);
            let ready = |here: &&Here| !state.has_ended() && here.is_ready(state, seen);
            let here = self.steps[index].as_ref().filter(ready);
            let cores = here.map_or(Cores::NONE, |here| here.cores.clone());
            JobPlan {
                act: act(seen, index, &cores),
                cores,
                threads: job.threads,
                ..JobPlan::default()
            }
        };
        CorePlan {
            service: self.service.clone(),
            speed: seen.pressed.then_some(1.0),
            jobs: self.jobs.iter().enumerate().map(of).collect(),
            reason: Reason::Written,
            ..CorePlan::default()
        }
    }
}

#[cfg(test)]
mod tests;
