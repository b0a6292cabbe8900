// SPDX-License-Identifier: Apache-2.0
//! `weir-feeds`: makes projects for rule-processing hosts.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use weir_feeds::Format;
use weir_feeds::generate::{Folder, Index, Progress, Settings, generate};

/// Items between two signs of life within a large project.
const TELL_EVERY: u64 = 1 << 20;

/// Makes projects for rule-processing hosts: items of shops that do not exist, and rules for them.
///
/// DIR gets <project>.parquet or .ndjson, rules/<project>-<channel>.json (complete request bodies),
/// and at the end feeds.json, which lists them. The same flags give the same files.
#[derive(Parser)]
#[command(name = "weir-feeds", version)]
struct Args {
    /// Folder to write to; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Projects
    #[arg(long, default_value_t = Settings::default().projects)]
    projects: usize,
    /// Items of the smallest possible project
    #[arg(long, value_name = "ITEMS", default_value_t = Settings::default().items_min)]
    items_min: u64,
    /// Items of the largest possible project
    #[arg(long, value_name = "ITEMS", default_value_t = Settings::default().items_max)]
    items_max: u64,
    /// Exponent of the bounded Pareto distribution of items: smaller is a heavier tail
    #[arg(long, value_name = "EXPONENT", default_value_t = Settings::default().items_shape)]
    items_shape: f64,
    /// Most channels, and so most request bodies, of a project
    #[arg(long, value_name = "CHANNELS", default_value_t = Settings::default().channels_max)]
    channels_max: u32,
    /// How items are written down
    #[arg(long, value_enum, default_value_t = Written::Parquet)]
    format: Written,
    /// All that is random follows from it
    #[arg(long, default_value_t = Settings::default().seed)]
    seed: u64,
    /// Write to DIR whatever it holds: removes its *.parquet, *.ndjson and rules/*.json, nothing else
    #[arg(long)]
    replace: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Written {
    Parquet,
    Ndjson,
}

impl Args {
    fn settings(&self) -> Settings {
        Settings {
            seed: self.seed,
            projects: self.projects,
            items_min: self.items_min,
            items_max: self.items_max,
            items_shape: self.items_shape,
            channels_max: self.channels_max,
            format: match self.format {
                Written::Parquet => Format::Parquet,
                Written::Ndjson => Format::Ndjson,
            },
        }
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(index) => {
            println!("{index}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("weir-feeds: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<Index> {
    let settings = args.settings();
    settings.check()?;
    let folder = Folder::open(&args.out, args.replace)?;
    Ok(generate(&settings, &folder, &mut tell)?)
}

/// A line a project, and one for each million items of a large one.
fn tell(progress: Progress<'_>) {
    let Progress {
        project,
        number,
        projects,
        written,
        items,
    } = progress;
    if written == items {
        eprintln!("{project} ({number} of {projects}): {items} items");
    } else if written % TELL_EVERY == 0 {
        eprintln!("{project} ({number} of {projects}): {written} of {items} items");
    }
}
