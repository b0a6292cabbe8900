// SPDX-License-Identifier: Apache-2.0
//! What it costs to tell a thousand sidecars of two hundred hosts that change each second.

mod linear_cache;
mod round;
mod shown;
mod way;

use anyhow::Result;
use weir_stage::open_files;

use super::runtime;
use crate::bench::section::Section;
use crate::bench::setting::Setting;
use crate::fleet::hosts::Hosts;
use crate::variant::in_turn;
use round::{Plan, Round};
use way::Way;

const HOSTS: usize = 200;
const SIDECARS: usize = 1000;
/// A connection of each sidecar and each host, and room for the rest.
const OPEN_FILES: u64 = 4000;

pub(super) fn measure(setting: &Setting) -> Result<Section> {
    open_files::allow(OPEN_FILES)?;
    let plan = Plan::new(setting.quick);
    let runtime = runtime()?;
    let hosts = runtime.block_on(Hosts::start(HOSTS, 0))?;
    let mut rounds: [Vec<Round>; Way::ALL.len()] = Default::default();
    for round in 0..plan.rounds {
        let number = round + 1;
        for (way, rounds) in in_turn(round, Way::ALL.into_iter().zip(&mut rounds)) {
            let (name, all) = (way.name(), plan.rounds);
            eprintln!("bench: push: fan-out, round {number} of {all}: {name}");
            let folder = setting
                .folder
                .join(format!("push/fan-out-{number}-{}", way.folder()));
            let round = round::measure(setting, &plan, way, &hosts, &folder);
            rounds.push(runtime.block_on(round)?);
        }
    }
    shown::section(&plan, &rounds)
}
