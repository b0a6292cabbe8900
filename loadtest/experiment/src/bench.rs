// SPDX-License-Identifier: Apache-2.0
//! What Weir costs beside its peers, measured in one run on this machine.
//!
//! ```text
//! Programs ─> parts (request, decide, ...) ─> Section ─> table on the terminal, BENCH.md, HTML
//! ```
//! Each part starts the processes it needs, measures its ways in turns or, in `inference`, all at once, round after round, and gives ratios with
//! their spread.

mod decide;
mod epp;
#[cfg(any(test, feature = "harness"))]
mod filter;
pub mod hosts;
mod inference;
mod load;
mod page;
mod part;
pub mod picker;
mod programs;
mod push;
mod reasons;
mod request;
mod section;
mod setting;
mod weir;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use weir_report::Report;

pub use self::page::Asked;
pub use self::part::Part;
pub use self::programs::Programs;
pub use self::section::Section;
use self::setting::Setting;
use crate::Experiment;
use crate::variant::Variant;

/// From the root of the repository, where `cargo xtask bench` runs it.
const TABLES: &str = "loadtest/BENCH.md";

/// Measures what Weir costs beside its peers.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    programs: Programs,
}

/// The experiment: its turns are parts, each of which gives sections of the page.
pub struct Bench {
    asked: Asked,
    setting: Setting,
    /// Parts so far, and how many sections each of them gave.
    measured: Vec<(Part, usize)>,
}

impl Experiment for Bench {
    const NAME: &'static str = "bench";
    const ROUNDS: &'static str = "sections.jsonl";
    type Args = Args;
    type Turn = Part;
    type Round = Section;

    fn set_up(Args { asked, programs }: Args, folder: &Path) -> Result<Self> {
        Ok(Self {
            setting: Setting {
                programs,
                folder: folder.to_owned(),
                quick: asked.quick,
                loads: asked.loads()?,
            },
            asked,
            measured: Vec::new(),
        })
    }

    fn turns(&self) -> Vec<Part> {
        match self.asked.parts.is_empty() {
            true => {
                let parts = Part::value_variants().iter().copied();
                parts.filter(|part| part.is_usual()).collect()
            }
            false => self.asked.parts.clone(),
        }
    }

    fn play(&mut self, part: &Part) -> Result<Vec<Section>> {
        let (name, all) = (part.name(), self.turns().len());
        eprintln!("bench: {name} ({} of {all})", self.measured.len() + 1);
        let sections = part.measure(&self.setting).context(name)?;
        self.measured.push((*part, sections.len()));
        Ok(sections)
    }

    fn table(&self, sections: &[Section]) -> String {
        page::markdown(&self.asked, sections)
    }

    fn report(&self, sections: &[Section]) -> Option<Report> {
        let missing = self.turns().split_off(self.measured.len());
        Some(page::report(&self.asked, sections, &missing))
    }

    fn finish(&mut self, sections: &[Section]) -> Result<()> {
        if self.asked.update {
            let old = fs::read_to_string(TABLES).with_context(|| format!("reading {TABLES}"))?;
            let mut sections = sections.iter();
            let parts = self.measured.iter().map(|(part, count)| {
                let of_it: Vec<&Section> = sections.by_ref().take(*count).collect();
                (*part, page::chunk(*part, &of_it))
            });
            let new = page::published(&old, parts);
            fs::write(TABLES, new).with_context(|| format!("writing {TABLES}"))?;
            println!("bench: {TABLES} is up to date");
        }
        Ok(())
    }
}
