// SPDX-License-Identifier: Apache-2.0
//! Document 001 on the command line.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use weir_replay::units;
use weir_sim::Ended;
use weir_sim::document001::report::{self, Made, Outcome};
use weir_sim::document001::{Circumstance, Experiment, Params, Requests, fit};
use weir_sim::tally::Tally;
use weir_whole_file::WholeFile;

use super::jobs;
use super::print;
use super::progress::Progress;

fn hours(text: &str) -> Result<f64, String> {
    match units::positive(text)? {
        hours if hours <= 240.0 => Ok(hours),
        _ => Err("at most 240".to_owned()),
    }
}

#[derive(clap::Args)]
struct Model {
    /// NAME=VALUE: a parameter that the text does not give; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Hours of requests, at most 240
    #[arg(long, default_value_t = 24.0, value_parser = hours)]
    hours: f64,
}

impl Model {
    fn params(&self) -> Result<Params> {
        let mut params = Params::default();
        for text in &self.set {
            let form = || anyhow!("--set {text}: is not like run_s=0.5");
            let (name, value) = text.split_once('=').ok_or_else(form)?;
            params.set(name, value.parse().map_err(|_| form())?)?;
        }
        Ok(params)
    }
}

#[derive(clap::Args)]
pub(super) struct Workload {
    #[command(flatten)]
    model: Model,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// CSV
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl Workload {
    pub(super) fn write(&self) -> Result<()> {
        let params = self.model.params()?;
        let mut progress = Progress::new(
            String::new(),
            Duration::from_secs_f64(self.model.hours * 3600.0),
        );
        let jobs = Requests::new(&params, self.seed, self.model.hours).as_trace();
        jobs::save(&self.out, jobs, |job| progress.see(job.at))?;
        progress.end();
        Ok(())
    }
}

#[derive(clap::Args)]
pub(super) struct Document001 {
    #[command(flatten)]
    model: Model,
    /// So many seeds, from 1
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Only these, as in breaker-dynamic
    #[arg(long, value_delimiter = ',')]
    only: Vec<Experiment>,
    /// Play the experiments under a circumstance that the document names: warm-caches, other-shuffle, connect-timeout,
    /// taken-together or taken-in-turn
    #[arg(long, default_value_t, value_name = "NAME")]
    circumstance: Circumstance,
    /// Write document-001.md, document-001.html, tables.csv and history.csv there
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Document001 {
    pub(super) fn run(&self) -> Result<()> {
        let params = self.model.params()?;
        let hours = self.model.hours;
        if let Some(folder) = &self.out {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let seeds: Vec<u64> = (1..=self.seeds).collect();
        let mut outcomes = Vec::new();
        let wanted = |one: &Experiment| self.only.is_empty() || self.only.contains(one);
        for experiment in Experiment::ALL.into_iter().filter(wanted) {
            let watch = |seed| {
                let name = format!("{}, seed {seed}: ", experiment.name());
                let mut progress = Progress::new(name, Duration::from_secs_f64(hours * 3600.0));
                move |ended: &Ended| progress.see(ended.at)
            };
            let began = Instant::now();
            let tallies =
                fit::run_all(experiment, self.circumstance, &params, &seeds, hours, watch)?;
            let requests: u64 = tallies.iter().map(|tally| tally.requests).sum();
            let rate = requests as f64 / began.elapsed().as_secs_f64();
            let name = experiment.name();
            eprintln!("{name}: SIMULATED {rate:.0} requests a second");
            outcomes.push(Outcome {
                experiment,
                tallies,
            });
        }
        let said = format!(
            "SIMULATED: {hours} h of requests as document 001 describes them, mean of seeds 1 to {}, experiments \
             {}. All-in figures include back-off and retries; the others are of attempts that a server took, as \
             document 001 has them. \"Weir, estimate\" has more news than the other runs, as Weir has by default: polls of a \
             second for five, load on answers, reports ten times as often.",
            self.seeds, self.circumstance
        );
        let text = format!("{said}\n\n{}", report::markdown(&outcomes, Made::Simulated));
        print!("{text}");
        if let Some(folder) = &self.out {
            self.write(folder, &said, &text, &outcomes)?;
        }
        Ok(())
    }

    fn write(&self, folder: &Path, said: &str, text: &str, outcomes: &[Outcome]) -> Result<()> {
        let mut flags = print::flags(&self.model.params()?);
        if !self.only.is_empty() {
            let names: Vec<_> = self.only.iter().map(|one| one.name()).collect();
            flags.push_str(&format!(" --only {}", names.join(",")));
        }
        if self.circumstance != Circumstance::AsPublished {
            flags.push_str(&format!(" --circumstance {}", self.circumstance));
        }
        let (hours, seeds) = (self.model.hours, self.seeds);
        let mut page = weir_report::Report::new("Document 001, SIMULATED", said);
        page.command(&format!(
            "weir-sim document-001 --hours {hours} --seeds {seeds}{flags}"
        ));
        report::add_figures(&mut page, outcomes, Made::Simulated);
        report::add_tables(&mut page, outcomes, Made::Simulated);
        page.write(folder.join("document-001.html"))?;
        for (name, text) in [
            ("document-001.md", text),
            ("tables.csv", &report::tables_csv(outcomes)),
            ("history.csv", &report::history_csv(outcomes)),
        ] {
            let path = folder.join(name);
            let named = || path.display().to_string();
            let mut out = WholeFile::create(&path).with_context(named)?;
            out.write_all(text.as_bytes()).with_context(named)?;
            out.finish().with_context(named)?;
        }
        Ok(())
    }
}

#[derive(clap::Args)]
pub(super) struct Fit {
    #[command(flatten)]
    model: Model,
    /// So many seeds, from 1
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Moves tried
    #[arg(long, default_value_t = 100)]
    tries: u32,
    /// Of these runs
    #[arg(long, value_delimiter = ',', default_value = "production")]
    only: Vec<Experiment>,
    /// Of the search
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Fit {
    pub(super) fn run(&self) -> Result<()> {
        let start = self.model.params()?;
        let hours = self.model.hours;
        let seeds: Vec<u64> = (1..=self.seeds).collect();
        let tell = |number: u32, distance: f64, params: &Params| {
            eprintln!(
                "try {number}: distance {distance:.4}{}",
                print::flags(params)
            );
        };
        let best = fit::climb(
            &self.only, &start, &seeds, hours, self.tries, self.seed, tell,
        )?;
        for run in &self.only {
            let tallies = fit::run_all(
                *run,
                Circumstance::AsPublished,
                &best,
                &seeds,
                hours,
                |_| |_: &Ended| {},
            )?;
            let rows: Vec<_> = tallies.iter().map(Tally::rows).collect();
            println!("SIMULATED: {} after {} tries", run.name(), self.tries);
            print::beside(&rows, run.published());
        }
        println!("weir-sim document-001{}", print::flags(&best));
        Ok(())
    }
}
