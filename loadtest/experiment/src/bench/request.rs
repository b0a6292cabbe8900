// SPDX-License-Identifier: Apache-2.0
//! What choosing the host costs per request, by who chooses it.
//!
//! ```text
//!  load ──> sidecar of each way in turn ──> hosts that answer at once
//!              │ asks: nobody, a module, Lua, a picker
//!              └── CPU of the sidecar and of the picker, per request; latencies
//! ```
//! Three groups: Weir's own hosts and headers, the same where Envoys have two workers, and the inference gateway's
//! picker on its completions. What a sidecar takes to begin with comes after them.

mod case;
mod figures;
mod footprint;
mod lua;
mod plan;
mod rounds;
mod sections;
mod stage;
mod way;

use anyhow::{Context, Result};

use crate::bench::request::case::Group;
use crate::bench::request::plan::Plan;
use crate::bench::request::stage::Stage;
use crate::bench::section::Section;
use crate::bench::setting::Setting;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    for group in case::groups() {
        sections.extend(group_of(setting, &group)?);
    }
    sections.push(footprint::section(setting)?);
    Ok(sections)
}

/// What a request costs with less and less of the filter.
pub(crate) fn layers(setting: &Setting) -> Result<Vec<Section>> {
    group_of(setting, &case::layers())
}

fn group_of(setting: &Setting, group: &Group) -> Result<Vec<Section>> {
    let plan = Plan::new(setting.quick);
    let folder = setting.folder.join("request").join(group.name);
    let mut stage = Stage::start(setting, group, folder.clone())?;
    let results = rounds::run(&mut stage, group, &plan)
        .with_context(|| format!("logs are in {}", folder.display()))?;
    sections::of(group, &plan, &results)
}
