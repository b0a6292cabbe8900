// SPDX-License-Identifier: Apache-2.0
//! What it costs to tell a thousand sidecars of two hundred hosts that change each second.

mod linear_cache;
mod round;
mod shown;
mod way;

use anyhow::Result;
use weir_stage::open_files;

use super::fleet::Fleet;
use super::runtime;
use crate::bench::Bench;
use crate::section::Section;
use round::{Plan, Round};
use way::Way;

const HOSTS: u32 = 200;
const SIDECARS: usize = 1000;
/// A connection of each sidecar and each host, and room for the rest.
const OPEN_FILES: u64 = 4000;

pub(super) fn measure(bench: &Bench) -> Result<Section> {
    open_files::allow(OPEN_FILES)?;
    let plan = Plan::new(bench.quick);
    let runtime = runtime()?;
    let fleet = runtime.block_on(Fleet::start(HOSTS))?;
    let mut rounds: [Vec<Round>; Way::ALL.len()] = Default::default();
    for number in 1..=plan.rounds {
        let mut ways: Vec<_> = Way::ALL.into_iter().zip(&mut rounds).collect();
        // Whoever comes first finds another machine than whoever comes last.
        if number % 2 == 0 {
            ways.reverse();
        }
        for (way, rounds) in ways {
            eprintln!(
                "bench: push: fan-out, round {number} of {}: {}",
                plan.rounds,
                way.name()
            );
            let folder = bench
                .folder
                .join(format!("push/fan-out-{number}-{}", way.folder()));
            let round = round::measure(bench, &plan, way, &fleet, &folder);
            rounds.push(runtime.block_on(round)?);
        }
    }
    shown::section(&plan, &rounds)
}
