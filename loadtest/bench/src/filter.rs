// SPDX-License-Identifier: Apache-2.0
//! The part `filter`: what the built module costs, under weir-testkit.

mod requests;
mod tables;

use anyhow::{Context, Result};

use crate::Bench;
use crate::section::Section;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Section>> {
    let module = bench.programs.filter.as_deref();
    weir_harness::load(module.context("this part needs --filter")?)?;
    eprintln!("filter: requests by reason");
    let requests = requests::section();
    Ok(vec![requests, tables::section(bench.quick)?])
}
