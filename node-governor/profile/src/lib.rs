// SPDX-License-Identifier: Apache-2.0
//! Finds the hot functions of a running program: which take most of its time, how often they are called and how long
//! a call takes, and which of them to name in the governor's configuration. What document 002 (Medeiros,
//! *Profile-guided frequency scaling for search workloads*, 2020) did by hand in section 3.2.1 and asks for in 5.1.
//!
//! ```text
//!  a JVM ── its flight recorder ─┐
//!  others ── perf_event_open ────┴─> Stacks ─> shares ─> candidates ─> observed for a while ─> choice ─> Report
//!                                                         (the agent, or uprobes, into a ring of weir-events)
//! ```
//!
//! The program is stopped for nothing and is afterwards as it was before.

mod calls;
mod choice;
mod error;
mod jvm;
mod native;
mod report;
mod stacks;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

pub use calls::Calls;
pub use choice::{Candidate, choose};
pub use error::Error;
pub use report::Report;
pub use stacks::{Function, Share, Stacks};

/// What is to be found out.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program's process.
    pub process: NonZeroU32,
    /// How long stacks are sampled, and then calls observed.
    pub time: Duration,
    /// Queries that the program answers a second meanwhile, where somebody knows.
    pub queries: Option<f64>,
    /// The jar of weir-events-agent, without which a JVM's calls are not observed.
    pub agent: Option<PathBuf>,
}

/// Samples, observes and chooses; `tell` hears what is being done.
///
/// # Errors
/// The process is gone, or what is needed is not allowed: each says what to do.
pub fn profile(request: &Request, tell: &mut dyn FnMut(&str)) -> Result<Report, Error> {
    let seconds = request.time.as_secs_f64();
    tell(&format!("sampling stacks for {seconds} s"));
    let jvm = jvm::Jvm::find(request.process)?;
    let (stacks, sampler) = match &jvm {
        Some(jvm) => (jvm.sample(request.time)?, "its flight recorder"),
        None => (
            native::sample(request.process, request.time)?,
            "perf events",
        ),
    };
    if stacks.samples() < choice::FEWEST_SAMPLES {
        return Err(Error::Idle {
            samples: stacks.samples(),
            sampler,
        });
    }
    let mut candidates = choice::candidates(&stacks.shares());
    tell(&format!(
        "{} samples by {sampler}; observing calls of {} functions for {seconds} s",
        stacks.samples(),
        candidates.len()
    ));
    let lost = match &jvm {
        Some(jvm) => match &request.agent {
            Some(agent) => jvm.observe(agent, &mut candidates, request.time)?,
            None => 0,
        },
        None => native::observe(request.process, &mut candidates, request.time)?,
    };
    Ok(Report {
        is_observed: jvm.is_none() || request.agent.is_some(),
        time: request.time,
        queries: request.queries,
        lost,
        chosen: choose(&candidates),
        path: stacks.path(),
        candidates,
    })
}
