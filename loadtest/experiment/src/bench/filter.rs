// SPDX-License-Identifier: Apache-2.0
//! The part `filter`: what the built module costs, under weir-testkit.

mod requests;
mod tables;

use anyhow::{Context, Result};
use weir_stage::interrupt;

use crate::bench::Bench;
use crate::section::Section;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Section>> {
    let module = bench.programs.filter.as_deref();
    weir_harness::load(module.context("this part needs --filter")?)?;
    eprintln!("filter: requests by reason");
    interrupt::check()?;
    let requests = requests::section();
    Ok(vec![requests, tables::section(bench.quick)?])
}
