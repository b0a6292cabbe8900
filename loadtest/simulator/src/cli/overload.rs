// SPDX-License-Identifier: Apache-2.0
//! Overload policies side by side.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use weir_policy::Selection;
use weir_policy::overload::breakwater;
use weir_replay::units;
use weir_sim::overload::{Case, Figures, HIGH_SHARE, Requests, Way, play};

use super::jobs;

/// Those that need no more than their name.
const SELECTIONS: [Selection; 5] = [
    Selection::Estimate,
    Selection::Dynamic,
    Selection::Baseline,
    Selection::Random,
    Selection::Rendezvous,
];

fn step(text: &str) -> Result<f64, String> {
    units::within(text, 0.0, 10.0)
}

fn load(text: &str) -> Result<f64, String> {
    units::within(text, 0.01, 100.0)
}

#[derive(clap::Args)]
pub(super) struct Args {
    /// Work that comes, over what the cores can do; above 1 it is a surge from 0.8
    #[arg(long, value_delimiter = ',', default_value = "0.6,0.8,0.9,2,3", value_parser = load)]
    load: Vec<f64>,
    /// Requests of priority high among all
    #[arg(long, default_value_t = HIGH_SHARE, value_name = "SHARE", value_parser = units::share)]
    high_share: f64,
    /// How long it comes; 3 and more: a tenth of it
    #[arg(long, default_value = "10m", value_parser = units::duration_above_0)]
    lasts: Duration,
    #[arg(long, value_delimiter = ',', default_value = "1,8,64")]
    callers: Vec<usize>,
    /// estimate, dynamic, baseline, random, rendezvous
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "estimate,dynamic,baseline"
    )]
    selection: Vec<String>,
    /// Names of policies; all where none is given
    #[arg(long, value_delimiter = ',')]
    way: Vec<String>,
    /// Between two polls of a host, ±10 %
    #[arg(long, default_value = "1s", value_parser = units::duration_above_0)]
    poll: Duration,
    /// Answers do not carry the host's load
    #[arg(long)]
    no_orca: bool,
    /// So many seeds, from 1
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// With dagor-steady: the wait that levels head for
    #[arg(long, default_value = "2s", value_parser = units::duration_above_0)]
    target: Duration,
    /// With dagor-steady: a host so far behind the usual one passes on what it cannot do
    #[arg(long, default_value = "6s", value_parser = units::duration_above_0)]
    behind: Duration,
    /// With dagor-steady: time in which a correction brings the wait back to the target
    #[arg(long, default_value = "120s", value_parser = units::duration_above_0)]
    settle: Duration,
    /// With breakwater: how long a request waits at its caller for a host that has its key
    #[arg(long, default_value = "10s", value_parser = units::duration)]
    hold_cached: Duration,
    /// With breakwater: the queuing delay that hosts head for
    #[arg(long, default_value = "1s", value_parser = units::duration_above_0)]
    breakwater_target: Duration,
    /// With breakwater: credits that a round adds, for each caller
    #[arg(long, default_value_t = breakwater::ALPHA, value_parser = step)]
    breakwater_alpha: f64,
    /// With breakwater: share of the credits that a round takes for each target's worth of delay over it
    #[arg(long, default_value_t = breakwater::BETA, value_parser = step)]
    breakwater_beta: f64,
    /// A host that takes longer to accept is passed over
    #[arg(long, value_parser = units::duration_above_0)]
    connect_timeout: Option<Duration>,
    /// Each job that waits at a host delays its accepting by so much
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    accept_per_job: Duration,
}

impl Args {
    pub(super) fn run(&self) -> Result<()> {
        println!(
            "SIMULATED; all-in seconds (back-off and retries included), success and goodput in overload (worst: of any 10 s), \
             reversals of the mean host's level an hour, refused attempts a request"
        );
        println!(
            "{:14} {:9} {:>7} {:18} {:>4} {:>7} {:>7} {:>7} {:>8} {:>7} {:>7} {:>6} {:>5} {:>7} {:>9} {:>7}",
            "case",
            "selection",
            "callers",
            "overload",
            "seed",
            "all",
            "high",
            "low",
            "high ok",
            "low ok",
            "goodput",
            "worst",
            "hits",
            "settled",
            "reversals",
            "refused"
        );
        for load in &self.load {
            let lasts = if *load >= 3.0 {
                self.lasts / 10
            } else {
                self.lasts
            };
            let mut case = match *load > 1.0 {
                true => Case::surge(*load, lasts),
                false => Case::constant(*load, lasts),
            };
            case.high_share = self.high_share;
            for selection in &self.selection {
                for callers in &self.callers {
                    for way in self.ways()? {
                        for seed in 1..=self.seeds {
                            let figures = self.play(&case, &way, selection, *callers, seed)?;
                            print!(
                                "{:14} {selection:9} {callers:>7} {:18} {seed:>4}",
                                case.name, way.name
                            );
                            row(&figures);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn ways(&self) -> Result<Vec<Way>> {
        let all = Way::all();
        for name in &self.way {
            if !all.iter().any(|way| way.name == name) {
                let names: Vec<_> = all.iter().map(|way| way.name).collect();
                bail!("--way: {name:?} is none of {}", names.join(", "));
            }
        }
        let chosen =
            |way: &Way| self.way.is_empty() || self.way.iter().any(|name| name == way.name);
        Ok(all.into_iter().filter(chosen).collect())
    }

    fn play(
        &self,
        case: &Case,
        way: &Way,
        selection: &str,
        callers: usize,
        seed: u64,
    ) -> Result<Figures> {
        let known = SELECTIONS
            .into_iter()
            .find(|known| known.as_str() == selection);
        let selection = known.with_context(|| {
            let names = SELECTIONS.map(Selection::as_str).join(", ");
            format!("--selection: {selection:?} is none of {names}")
        })?;
        let mut scenario = way.scenario(selection, callers, seed);
        scenario.poll = self.poll;
        // What is polled less often is believed for longer.
        scenario.policy.stale_after = scenario.policy.stale_after.max(3 * self.poll);
        scenario.orca = !self.no_orca;
        scenario.timeouts.connect = self.connect_timeout;
        scenario.accept.per_job = self.accept_per_job;
        scenario.dagor.steady = weir_policy::steady::Params::aiming_at(self.target);
        if scenario.policy.holding.is_on() {
            scenario.policy.holding.for_cached = self.hold_cached;
        }
        scenario.dagor.behind = self.behind;
        scenario.dagor.steady.settle = self.settle;
        scenario.breakwater = breakwater::Params {
            target: self.breakwater_target,
            alpha: self.breakwater_alpha,
            beta: self.breakwater_beta,
        };
        Ok(play(case, &scenario)?)
    }
}

fn row(figures: &Figures) {
    let [high, low] = figures.mean_s();
    let [high_ok, low_ok] = figures.success();
    let settled = figures.settled();
    let settled = settled.map_or("-".to_owned(), |after| format!("{} s", after.as_secs()));
    let worst = figures.worst();
    let worst = worst.map_or("-".to_owned(), |goodput| format!("{goodput:.2}"));
    println!(
        " {:7.3} {high:7.3} {low:7.3} {:7.2}% {:6.1}% {:7.3} {worst:>6} {:5.2} {settled:>7} {:9.0} {:7.3}",
        figures.all_in_s(),
        high_ok * 100.0,
        low_ok * 100.0,
        figures.goodput(),
        figures.hit_ratio(),
        figures.reversals,
        figures.refused(),
    );
}

#[derive(clap::Args)]
pub(super) struct Workload {
    /// Work that comes, over what the cores can do; above 1 it is a surge from 0.8
    #[arg(long, value_parser = load)]
    load: f64,
    #[arg(long, default_value = "10m", value_parser = units::duration_above_0)]
    lasts: Duration,
    /// Of all hosts together
    #[arg(long, default_value_t = 56)]
    cores: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// CSV
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl Workload {
    pub(super) fn write(&self) -> Result<()> {
        if self.cores == 0 {
            bail!("--cores: a fleet without cores can do nothing; give at least 1");
        }
        let case = match self.load > 1.0 {
            true => Case::surge(self.load, self.lasts),
            false => Case::constant(self.load, self.lasts),
        };
        jobs::save(
            &self.out,
            Requests::new(&case, self.cores, self.seed),
            |_| {},
        )
    }
}
