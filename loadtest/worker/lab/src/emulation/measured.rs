// SPDX-License-Identifier: Apache-2.0
//! A model of joblets from the log of a real run.

use std::collections::HashMap;
use std::time::Duration;

use weir_executor::{Kind, Modelled, Request, Step};
use weir_worker::rules::joblet_log::Line;
use weir_worker::rules::task::Task;

use crate::jobs::Job;
use crate::log::core_time;
use crate::real::{Arrival, Sharing, request};

/// By kind and name: the core times and the size of each result that was made, and of each answer.
#[derive(Debug)]
pub(super) struct Measured(HashMap<(String, String), Made>);

#[derive(Debug, Default)]
struct Made {
    /// When it was made and in how long, each time.
    times: Vec<(Duration, Duration)>,
    bytes: u64,
}

impl Measured {
    pub(super) fn new(lines: &[Line]) -> Self {
        let mut all: HashMap<_, Made> = HashMap::new();
        for line in lines {
            let made = all.entry((line.kind.clone(), line.of.clone())).or_default();
            let ended = Duration::from_micros(line.ended_us);
            made.times.push((ended, core_time(line)));
            made.bytes = line.bytes.unwrap_or(0);
        }
        Self(all)
    }

    /// The n-th job of the run, with the model's joblets.
    pub(super) fn request(&self, job: &Job, arrival: &Arrival, n: usize) -> Request<Modelled> {
        let (real, _) = request(job, arrival.class, &n.to_string(), Sharing::Allowed);
        let step = |step: Step<Task>| Step {
            work: self.model(step.kind, &step.work, arrival.at),
            kind: step.kind,
            result: step.result,
            keep: step.keep,
            cores: step.cores,
        };
        Request {
            class: arrival.class,
            steps: real.steps.into_iter().map(step).collect(),
        }
    }

    /// As long as the result took when it was next made after `at`: a mean would take out the
    /// spread and the slow spells of the machine, and waits come of these. A result that the real
    /// run did not have to make takes no time here either.
    fn model(&self, kind: Kind, work: &Task, at: Duration) -> Modelled {
        let of = (kind.name().to_owned(), work.name());
        let Some(made) = self.0.get(&of) else {
            return Modelled {
                core_time: Duration::ZERO,
                bytes: 0,
            };
        };
        let next = made.times.partition_point(|(ended, _)| *ended < at);
        let (_, core_time) = made.times[next.min(made.times.len() - 1)];
        Modelled {
            core_time,
            bytes: made.bytes,
        }
    }
}
