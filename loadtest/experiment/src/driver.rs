// SPDX-License-Identifier: Apache-2.0
//! The course of every experiment: set up, a turn after the other, and what is told of them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_replay::rng::SplitMix64;
use weir_report::Report;
use weir_stage::interrupt;
use weir_whole_file::WholeFile;

use crate::verdict::Verdict;

/// The usual file of rounds.
pub(crate) const ROUNDS: &str = "rounds.jsonl";

/// What is measured, and how.
pub trait Experiment: Sized {
    /// As `cargo xtask` has it, and lines of progress.
    const NAME: &'static str;
    /// The file of rounds, a line of JSON each.
    const ROUNDS: &'static str = ROUNDS;
    /// The file of the table.
    const TABLE: &'static str = "table.md";
    /// The table itself says what holds.
    const TABLE_HAS_VERDICTS: bool = false;
    /// Flags of its own.
    type Args: Args;
    /// One thing to do: a way of a round.
    type Turn;
    /// What was measured in it.
    type Round: Serialize;

    /// What is printed instead of running anything, where that is asked for. Also says no to flags that cannot be.
    ///
    /// # Errors
    /// The flags name something that is not there.
    fn listing(_: &Self::Args) -> Result<Option<String>> {
        Ok(None)
    }

    /// Before the first turn: what is measured once and shared by all.
    ///
    /// # Errors
    /// A program fails, or the machine is not fit for it.
    fn set_up(args: Self::Args, folder: &Path) -> Result<Self>;

    /// All turns, in their order.
    fn turns(&self) -> Vec<Self::Turn>;

    /// Does one. Gives the rounds that it measured.
    ///
    /// # Errors
    /// What is measured fails, something is left behind, or a signal has come.
    fn play(&mut self, turn: &Self::Turn) -> Result<Vec<Self::Round>>;

    /// A line of progress after a round.
    fn progress(&self, _: &Self::Round) -> Option<String> {
        None
    }

    /// The figures as text: printed at the end.
    fn table(&self, rounds: &[Self::Round]) -> String;

    /// What is claimed, held against the figures.
    fn verdicts(&self, _: &[Self::Round]) -> Vec<Verdict> {
        Vec::new()
    }

    /// The run as a page.
    fn report(&self, _: &[Self::Round]) -> Option<Report> {
        None
    }

    /// After the last turn, whatever the verdicts are: ends what all turns shared.
    ///
    /// # Errors
    /// A file cannot be written.
    fn finish(&mut self, _: &[Self::Round]) -> Result<()> {
        Ok(())
    }
}

/// The file of the report.
pub const REPORT: &str = "report.html";

/// The heading of flags that `cargo xtask` gives by itself.
pub const GIVEN: &str = "Given by cargo xtask";

/// The command line of an experiment.
#[derive(Args)]
pub struct Line<E: Experiment> {
    #[command(flatten)]
    own: E::Args,
    #[command(flatten)]
    folder: Folder,
}

/// The folder of a run's files.
#[derive(Args)]
pub struct Folder {
    /// For logs, rounds, the table and the report
    #[arg(long, value_name = "FOLDER", default_value = ".weir/experiment", help_heading = GIVEN)]
    folder: PathBuf,
}

/// Flags of experiments whose order is drawn.
#[derive(Args, Clone, Copy, Debug)]
pub struct Seeded {
    /// Fewer and shorter rounds: a taste of some minutes, with rougher figures
    #[arg(long)]
    pub quick: bool,
    /// Of all that is drawn: loads, inputs and the order of ways
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Seeded {
    /// A generator for what is drawn.
    #[must_use]
    pub fn random(&self) -> SplitMix64 {
        SplitMix64::new(self.seed)
    }

    /// The command that makes the same run again.
    #[must_use]
    pub fn command(&self, name: &str) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        format!("cargo xtask {name}{quick} --seed {}", self.seed)
    }
}

/// How far it goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Course {
    /// From the set-up to the verdicts.
    Whole,
    /// Flags are looked at, and what needs no programs is said: nothing is run.
    Asked,
}

/// Runs it.
///
/// # Errors
/// A flag names something that is not there, a part fails, or a claim that is asserted does not hold.
pub fn run<E: Experiment>(Line { own, folder }: Line<E>, course: Course) -> Result<()> {
    if let Some(listing) = E::listing(&own)? {
        print!("{listing}");
        return Ok(());
    }
    if course == Course::Asked {
        return Ok(());
    }
    interrupt::catch()?;
    // weir-governor takes absolute paths alone.
    let folder = std::path::absolute(folder.folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let mut experiment = E::set_up(own, &folder)?;
    let mut rounds = Vec::new();
    for turn in experiment.turns() {
        for round in experiment.play(&turn)? {
            if let Some(line) = experiment.progress(&round) {
                println!("{}: {line}", E::NAME);
            }
            rounds.push(round);
        }
        // After each, so that what was measured is kept if the next one fails.
        keep(&experiment, &rounds, &folder)?;
    }
    experiment.finish(&rounds)?;
    println!("\n{}", experiment.table(&rounds));
    let verdicts = experiment.verdicts(&rounds);
    if !E::TABLE_HAS_VERDICTS {
        verdicts.iter().for_each(|verdict| println!("{verdict}"));
    }
    match verdicts.iter().filter(|verdict| verdict.fails()).count() {
        0 => Ok(()),
        failed => bail!("{failed} of {} claims do not hold", verdicts.len()),
    }
}

fn keep<E: Experiment>(experiment: &E, rounds: &[E::Round], folder: &Path) -> Result<()> {
    write_lines(&folder.join(E::ROUNDS), rounds)?;
    let table = folder.join(E::TABLE);
    weir_whole_file::write(&table, experiment.table(rounds))
        .with_context(|| format!("writing {}", table.display()))?;
    if let Some(report) = experiment.report(rounds) {
        report.write(folder.join(REPORT))?;
    }
    Ok(())
}

/// Writes a line of JSON each.
///
/// # Errors
/// The file cannot be written.
pub fn write_lines<'a, T: Serialize + 'a>(
    file: &Path,
    all: impl IntoIterator<Item = &'a T>,
) -> Result<()> {
    let write = || -> Result<()> {
        let mut out = WholeFile::create(file)?;
        for one in all {
            serde_json::to_writer(&mut out, one)?;
            out.write_all(b"\n")?;
        }
        Ok(out.finish()?)
    };
    write().with_context(|| format!("writing {}", file.display()))
}

/// Reads what [`write_lines`] wrote.
///
/// # Errors
/// The file cannot be read, or a line is not one of these.
pub fn read_lines<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let lines = text.lines().enumerate().map(|(number, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("reading {}, line {}", file.display(), number + 1))
    });
    lines.collect()
}

/// Writes a value for people and programs.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(file: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec_pretty(value)?;
    weir_whole_file::write(file, text).with_context(|| format!("writing {}", file.display()))
}
