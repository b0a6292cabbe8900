// SPDX-License-Identifier: Apache-2.0
//! `weir-faults`: plays faults and prints what came of them. `cargo xtask faults` builds what it needs and calls it;
//! programs are named by the environment, as in the tests.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use weir_faults::FAULTS;
use weir_faults::fault::Fault;
use weir_faults::run::Suite;
use weir_faults::table;
use weir_mesh::Programs;
use weir_stage::interrupt;

/// What happens when parts of a mesh die, lie or hang.
#[derive(Parser)]
#[command(name = "weir-faults", version)]
struct Args {
    /// Only these faults; --list names all
    names: Vec<String>,
    /// Name all faults and what is expected of each
    #[arg(long)]
    list: bool,
    /// The short form, as in the tests
    #[arg(long)]
    short: bool,
    /// For logs, requests, results and `table.md`
    #[arg(long, value_name = "FOLDER", default_value = ".weir/faults/latest")]
    folder: PathBuf,
    /// Also write the table to this file, as a page. Only of all faults, at full length
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "list", "short"])]
    update: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let wanted = wanted(&args.names)?;
    if args.list {
        for fault in wanted {
            println!("{:<28} {}", fault.name, fault.expectation.sentence);
        }
        return Ok(());
    }
    interrupt::catch()?;
    fs::create_dir_all(&args.folder)
        .with_context(|| format!("creating {}", args.folder.display()))?;
    let programs = Programs::from_environment()?;
    let say = |line: &str| println!("faults: {line}");
    let mut suite = Suite::new(programs, args.folder.clone(), say);
    let mut all = Vec::new();
    for fault in wanted {
        let length = match (args.short, fault.short) {
            (false, _) => fault.full,
            (true, Some(short)) => short,
            (true, None) => {
                println!("faults: {} has no short form", fault.name);
                continue;
            }
        };
        all.push(suite.play(fault, length)?);
        // After each, so that what was seen is kept if the next one fails.
        fs::write(args.folder.join("table.md"), table::markdown(&all))?;
    }
    drop(suite);
    println!("\n{}", table::markdown(&all));
    if let Some(file) = &args.update {
        fs::write(file, table::page(&all))
            .with_context(|| format!("writing {}", file.display()))?;
    }
    let bad = all.iter().filter(|played| !played.verdict.is_good());
    match bad.count() {
        0 => Ok(()),
        bad => bail!("{bad} of {} faults fell short", all.len()),
    }
}

/// Those that are named, in the order of the list; all if none is.
fn wanted(names: &[String]) -> Result<Vec<&'static Fault>> {
    for name in names {
        if !FAULTS.iter().any(|fault| fault.name == name) {
            let all: Vec<_> = FAULTS.iter().map(|fault| fault.name).collect();
            bail!("there is no fault `{name}`; there are {}", all.join(", "));
        }
    }
    let named = |fault: &&Fault| names.is_empty() || names.iter().any(|name| name == fault.name);
    Ok(FAULTS.iter().filter(named).collect())
}
