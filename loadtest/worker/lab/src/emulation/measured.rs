// SPDX-License-Identifier: Apache-2.0
//! A model of joblets from the log of a real run.

use std::collections::HashMap;
use std::time::Duration;

use weir_executor::{Kind, Modelled, Request, Step};
use weir_worker::joblet_log::Line;
use weir_worker::task::Task;

use crate::jobs::Job;
use crate::log::core_time;
use crate::real::{Sharing, request};

/// Mean core time and size of each result that was made, and of each answer.
#[derive(Debug)]
pub(super) struct Measured(HashMap<(String, String), (Duration, u64, u32)>);

impl Measured {
    pub(super) fn new(lines: &[Line]) -> Self {
        let mut all: HashMap<_, (Duration, u64, u32)> = HashMap::new();
        for line in lines {
            let (sum, bytes, n) = all.entry((line.kind.clone(), line.of.clone())).or_default();
            *sum += core_time(line);
            *bytes = line.bytes.unwrap_or(0);
            *n += 1;
        }
        Self(all)
    }

    /// The n-th job of the run, with the model's joblets.
    pub(super) fn request(&self, job: &Job, class: u8, n: usize) -> Request<Modelled> {
        let (real, _) = request(job, class, &n.to_string(), Sharing::Allowed);
        let step = |step: Step<Task>| Step {
            work: self.model(step.kind, &step.work),
            kind: step.kind,
            result: step.result,
            keep: step.keep,
            cores: step.cores,
        };
        Request {
            class,
            steps: real.steps.into_iter().map(step).collect(),
        }
    }

    /// A result that the real run did not have to make takes no time here either.
    fn model(&self, kind: Kind, work: &Task) -> Modelled {
        let of = (kind.name().to_owned(), work.name());
        let (sum, bytes, n) = self.0.get(&of).copied().unwrap_or_default();
        Modelled {
            core_time: sum / n.max(1),
            bytes,
        }
    }
}
