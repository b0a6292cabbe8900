// SPDX-License-Identifier: Apache-2.0
//! From a request to the joblets that a host runs.

use std::sync::Arc;
use std::time::Duration;

use weir_executor::{Kind, Modelled, Request, ResultId, Step, Timing};

use crate::workload::{Job, Key, Work};

/// The joblets of a request.
pub(crate) fn of(job: &Job, keys: &[Key], timing: &Timing) -> Request<Modelled> {
    let key = job.key.and_then(|key| keys.get(key as usize));
    let result = |kind, rules: u32| {
        key.map(|key| ResultId {
            kind,
            key: Arc::clone(&key.name),
            version: u128::from(job.version) << 32 | u128::from(rules),
        })
    };
    let step = |kind, result: Option<ResultId>, cores: u8, core_time, bytes| Step {
        kind,
        keep: result.is_some(),
        result,
        cores: usize::from(cores),
        work: Modelled { core_time, bytes },
    };
    let mut steps = Vec::with_capacity(4);
    if let Some(feed) = result(Kind::FeedSource, 0) {
        let fetch = timing.fetch(job.bytes);
        steps.push(step(Kind::FeedSource, Some(feed), 1, fetch, job.bytes));
    }
    match job.work {
        Work::Prefetch => {}
        Work::Whole(run) => steps.push(step(Kind::Operators, None, 1, run, 0)),
        Work::Split {
            rules,
            shared,
            own,
            output,
            cores,
        } => {
            if !shared.is_zero() {
                // Rules leave the items about as large as they were.
                let result = result(Kind::SharedOperators, rules);
                let bytes = job.bytes;
                steps.push(step(Kind::SharedOperators, result, cores, shared, bytes));
            }
            let kinds = [(Kind::Operators, own, cores), (Kind::OutputFeed, output, 1)];
            let last = kinds
                .into_iter()
                .filter(|(_, time, _)| *time > Duration::ZERO);
            steps.extend(last.map(|(kind, time, cores)| step(kind, None, cores, time, 0)));
        }
    }
    Request {
        class: job.class,
        steps,
    }
}
