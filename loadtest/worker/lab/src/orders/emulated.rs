// SPDX-License-Identifier: Apache-2.0
//! The same arrivals on the EMULATED executor: each job's joblets last as long as those of a job
//! of the calibration, drawn at random.

use std::collections::HashMap;
use std::time::Duration;

use weir_executor::{Emulator, Event, JobId, Kind, Modelled, Request, Settings, Step};

use super::calibrate::Sample;
use crate::arrivals::Arrivals;
use crate::real::{Arrival, Outcome};

pub(super) fn run(
    settings: &Settings,
    arrivals: &[Arrival],
    samples: &[Sample],
    seed: u64,
) -> Vec<Outcome> {
    let mut draw = Arrivals::new(seed);
    let mut host = Emulator::new(settings, 1);
    let mut came: HashMap<JobId, Arrival> = HashMap::new();
    let mut outcomes = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        collect(&mut host, arrival.at, &mut came, &mut outcomes);
        let request = request(&samples[draw.pick(samples.len())], arrival.class);
        // The queue of these runs is longer than any that comes about in them.
        if let Ok(job) = host.submit(arrival.at, request) {
            came.insert(job, *arrival);
        }
    }
    collect(&mut host, Duration::MAX, &mut came, &mut outcomes);
    outcomes.sort_by_key(|outcome| outcome.at);
    outcomes
}

/// Goes from end to end, so that each is told at its own time.
fn collect(
    host: &mut Emulator,
    until: Duration,
    came: &mut HashMap<JobId, Arrival>,
    outcomes: &mut Vec<Outcome>,
) {
    while let Some(due) = host.next_due().filter(|due| *due <= until) {
        for event in host.advance(due) {
            if let Event::Ended(job, Ok(spent)) = event
                && let Some(Arrival { at, class, .. }) = came.remove(&job)
            {
                outcomes.push(Outcome {
                    at,
                    class,
                    response: Some(due - at),
                    spent: Some(spent),
                });
            }
        }
    }
}

fn request(sample: &Sample, class: u8) -> Request<Modelled> {
    let steps = Kind::ALL.into_iter().zip(sample);
    let steps = steps.filter(|(_, core_time)| !core_time.is_zero());
    let step = |(kind, core_time): (Kind, &Duration)| Step {
        kind,
        result: None,
        keep: false,
        cores: 1,
        work: Modelled {
            core_time: *core_time,
            bytes: 0,
        },
    };
    Request {
        class,
        steps: steps.map(step).collect(),
    }
}
