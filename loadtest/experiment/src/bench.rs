// SPDX-License-Identifier: Apache-2.0
//! `weir-bench`: what Weir costs beside its peers, measured in one run on this machine.
//!
//! ```text
//! Programs ─> parts (request, decide, ...) ─> Section ─> table on the terminal, BENCH.md, HTML
//! ```
//! Each part starts the processes it needs, measures its ways in turns, round after round, and
//! gives ratios with their spread.

mod bench;
mod decide;
mod epp;
mod filter;
mod inference;
mod load;
mod part;
mod programs;
mod push;
mod reasons;
mod request;
mod section;
mod sidecar;
mod weir;
mod write;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use weir_stage::{exit, interrupt};

use crate::bench::Bench;
use crate::part::Part;
use crate::programs::Programs;
use crate::section::Section;
use crate::write::Asked;

/// Measures what Weir costs beside its peers. `cargo xtask bench` builds what it needs and calls it.
#[derive(Parser)]
#[command(name = "weir-bench", version)]
struct Cli {
    /// Only these parts
    part: Vec<Part>,
    /// Fewer and shorter rounds: a taste, with rougher figures
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    programs: Programs,
    /// Where logs and configurations of what is started are kept
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
    /// Also write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Also write the tables and plots as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn main() -> ExitCode {
    exit::code(run(Cli::parse()))
}

fn run(cli: Cli) -> Result<()> {
    interrupt::catch()?;
    let named = cli.part.clone();
    let parts = match cli.part.is_empty() {
        true => Part::ALL.to_vec(),
        false => cli.part,
    };
    let bench = Bench {
        programs: cli.programs,
        folder: cli.folder,
        quick: cli.quick,
    };
    let mut sections = Vec::new();
    let measured = measure(&bench, &parts, &mut sections);
    let asked = Asked {
        parts: &named,
        quick: bench.quick,
        published: cli.markdown.is_some(),
    };
    // What was measured before a part failed is not lost, but only a whole run is published.
    if let Some(file) = cli.html {
        write::html(&sections, &asked, measured.as_ref().err(), &file)?;
    }
    measured?;
    if let Some(file) = cli.markdown {
        write::markdown(&sections, &asked, &file)?;
    }
    Ok(())
}

fn measure(bench: &Bench, parts: &[Part], sections: &mut Vec<Section>) -> Result<()> {
    for (number, part) in parts.iter().enumerate() {
        eprintln!("bench: {} ({} of {})", part.name(), number + 1, parts.len());
        for section in part.measure(bench).context(part.name())? {
            println!("{section}");
            sections.push(section);
        }
    }
    Ok(())
}
