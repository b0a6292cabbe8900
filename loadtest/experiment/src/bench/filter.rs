// SPDX-License-Identifier: Apache-2.0
//! The part `filter`: what the built module costs, under weir-testkit.

mod requests;
mod tables;

use anyhow::Result;
use weir_stage::interrupt;

use crate::bench::section::Section;
use crate::bench::setting::Setting;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Section>> {
    weir_harness::load(&setting.programs.filter)?;
    eprintln!("filter: requests by reason");
    interrupt::check()?;
    let requests = requests::section();
    Ok(vec![requests, tables::section(setting.quick)?])
}
