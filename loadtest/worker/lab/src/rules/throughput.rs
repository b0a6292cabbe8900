// SPDX-License-Identifier: Apache-2.0
//! Items a second on one core: the engine, jq and Python.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Result;
use tokio::runtime::Runtime;
use weir_rules::Plan;

use super::cost;
use super::engine;
use super::items::{Items, PROJECT};
use super::programs::{Program, Programs};
use super::samples::{Figure, Samples};
use super::sets::{self, RuleSet};

const PART: &str = "rules";

/// All contestants, ready.
pub(super) struct Throughput<'a> {
    items: &'a Items,
    runtime: Runtime,
    sets: Vec<Ready<'a>>,
}

struct Ready<'a> {
    set: &'static RuleSet,
    plan: Plan,
    programs: Vec<(&'a Program, PathBuf)>,
}

impl<'a> Throughput<'a> {
    pub(super) fn new(items: &'a Items, programs: &'a Programs) -> Result<Self> {
        let ready = |set: &'static RuleSet| {
            let install =
                |program: &'a Program| Ok((program, program.install(set, items.folder())?));
            Ok(Ready {
                set,
                plan: engine::compile(set.request.as_bytes(), true)?,
                programs: programs.iter().map(install).collect::<Result<_>>()?,
            })
        };
        Ok(Self {
            items,
            runtime: engine::runtime()?,
            sets: sets::ALL.iter().map(ready).collect::<Result<_>>()?,
        })
    }

    pub(super) fn measure(&self, samples: &mut Samples) -> Result<()> {
        for ready in &self.sets {
            eprintln!("  {}", ready.set.name);
            self.engine(ready, samples)?;
            self.programs(ready, samples)?;
        }
        self.starts(samples)
    }

    fn engine(&self, Ready { set, plan, .. }: &Ready<'_>, samples: &mut Samples) -> Result<()> {
        let base = from_file(set);
        let mut add = |what, cost| {
            let about = (self.items.count(), Some(base.as_str()));
            samples.add(PART, what, about, Figure::Cost(cost));
        };
        let ((), whole) = cost::of(|| {
            let feed = engine::fetch(&self.runtime, &self.items.store, PROJECT)?;
            engine::write_nowhere(plan, &engine::apply(plan, &feed)?)?;
            Ok(())
        })?;
        add(base.clone(), whole);
        let (result, evaluated) = cost::of(|| engine::apply(plan, &self.items.feed))?;
        let (_bytes, written) = cost::of(|| engine::write_nowhere(plan, &result))?;
        let name = set.name;
        add(
            format!("{name}: engine, decoded feed to NDJSON"),
            evaluated + written,
        );
        add(format!("{name}: engine, of this evaluating"), evaluated);
        add(format!("{name}: engine, of this writing"), written);
        Ok(())
    }

    fn programs(&self, ready: &Ready<'_>, samples: &mut Samples) -> Result<()> {
        for (program, script) in &ready.programs {
            let cost =
                cost::of_program(&mut program.command(script, &self.items.file, Stdio::null()))?;
            let what = format!("{}: {}, NDJSON to NDJSON", ready.set.name, program.name);
            let base = from_file(ready.set);
            samples.add(
                PART,
                what,
                (self.items.count(), Some(&base)),
                Figure::Cost(cost),
            );
        }
        Ok(())
    }

    /// With the first set, on one item.
    fn starts(&self, samples: &mut Samples) -> Result<()> {
        for (program, script) in self.sets.iter().take(1).flat_map(|ready| &ready.programs) {
            let cost =
                cost::of_program(&mut program.command(script, &self.items.first, Stdio::null()))?;
            let what = format!("{}: start, with one item", program.name);
            samples.add(PART, what, (0, None), Figure::Cost(cost));
        }
        Ok(())
    }

    pub(super) fn note(&self) -> String {
        let bytes = std::fs::metadata(&self.items.file).map_or(0, |file| file.len());
        format!(
            "rules: one core, a file of {:.0} MB from the page cache, output dropped; all gave the same output before.",
            bytes as f64 / 1e6
        )
    }
}

/// The row that the others are compared with: it does all that jq and Python do.
fn from_file(set: &RuleSet) -> String {
    format!("{}: engine, NDJSON to NDJSON", set.name)
}
