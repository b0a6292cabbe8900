// SPDX-License-Identifier: Apache-2.0
//! Plays faults, those that leave the mesh whole on one mesh.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use weir_mesh::{HOSTS, Mesh, Plan, Programs};
use weir_stage::{control, http, interrupt};

use crate::faults::executions::{self, Executions};
use crate::faults::fault::{Fault, Length};
use crate::faults::figures::Figures;
use crate::faults::in_flight;
use crate::faults::load::{Manner, Pattern, Sent};
use crate::faults::outcome::Outcome;
use crate::faults::stage::Stage;
use crate::faults::verdict::Verdict;

/// Of the hosts' cores, in use while all is well: two hosts of three carry it without a queue.
const LOAD: f64 = 0.4;
/// For the mesh to be as it was after a fault.
const WHOLE: Duration = Duration::from_secs(90);

/// A fault that was played.
#[derive(Debug, Serialize)]
pub struct Played {
    /// Its name.
    pub fault: &'static str,
    /// In one sentence.
    pub expectation: &'static str,
    /// What was counted, if it could be played.
    pub figures: Option<Figures>,
    /// What the fault did and measured.
    pub outcome: Outcome,
    /// Whether what was expected came.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Plays faults one after the other.
pub struct Suite<'a> {
    programs: Programs,
    folder: PathBuf,
    tell: Box<dyn FnMut(&str) + Send + 'a>,
    shared: Option<Mesh>,
    meshes: usize,
}

impl<'a> Suite<'a> {
    /// Logs, requests and results go to a folder of its own.
    #[must_use]
    pub fn new(programs: Programs, folder: PathBuf, tell: impl FnMut(&str) + Send + 'a) -> Self {
        Self {
            programs,
            folder,
            tell: Box::new(tell),
            shared: None,
            meshes: 0,
        }
    }

    /// Plays a fault. What goes wrong with that is a verdict too.
    ///
    /// # Errors
    /// A signal has come, or the result cannot be kept.
    pub fn play(&mut self, fault: &Fault, length: Length) -> Result<Played> {
        let folder = self.folder.join(fault.name);
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let played = self.attempt(fault, length, &folder);
        interrupt::check()?;
        let played = played.unwrap_or_else(|error| {
            // Who knows how it is now: the next fault gets another.
            self.shared = None;
            Played {
                fault: fault.name,
                expectation: fault.expectation.sentence,
                figures: None,
                outcome: Outcome::default(),
                verdict: Verdict::NotPlayed {
                    why: format!("{error:#}"),
                },
            }
        });
        let told = match played.verdict.details() {
            Some(details) => format!("{}: {}: {details}", fault.name, played.verdict.word()),
            None => format!("{}: {}", fault.name, played.verdict.word()),
        };
        (self.tell)(&told);
        let file = folder.join("result.json");
        fs::write(&file, serde_json::to_vec_pretty(&played)?)
            .with_context(|| format!("writing {}", file.display()))?;
        Ok(played)
    }

    fn attempt(&mut self, fault: &Fault, length: Length, folder: &Path) -> Result<Played> {
        let mut mesh = self.mesh(fault)?;
        let pattern = pattern(fault.name, length.rate);
        let mut stage = Stage::begin(&mut mesh, fault.name, length, &pattern, &mut self.tell)?;
        (fault.run)(&mut stage)?;
        let (steady, own, mut outcome) = stage.end()?;
        outcome.measure(&steady, &own);
        keep(folder, &steady, &own)?;
        let left = in_flight::settled(&mut mesh)?;
        let executions = Executions::read(&executions::folder(mesh.folder()))?;
        let figures = Figures::of(&steady, &own, &executions, &outcome, left);
        let verdict = Verdict::of(
            &fault.expectation,
            &figures,
            &outcome.measured,
            fault.known_gap.map(|gap| gap.at(length)),
        );
        if fault.own.is_none() {
            until_whole(&mut mesh)?;
            self.shared = Some(mesh);
        }
        Ok(Played {
            fault: fault.name,
            expectation: fault.expectation.sentence,
            figures: Some(figures),
            outcome,
            verdict,
        })
    }

    /// The shared mesh, or the fault's own.
    fn mesh(&mut self, fault: &Fault) -> Result<Mesh> {
        let shared = self.shared.take();
        if let (None, Some(mesh)) = (fault.own, shared) {
            return Ok(mesh);
        }
        self.meshes += 1;
        let folder = self.folder.join(format!("mesh-{}", self.meshes));
        let mut programs = self.programs.clone();
        let mut plan = Plan {
            prometheus: false,
            ..Plan::default()
        };
        if let Some(change) = fault.own {
            change(&mut plan, &mut programs)?;
        }
        let notes = executions::folder(&folder);
        let notes = notes.to_str().context("the folder's name is not UTF-8")?;
        plan.host_flags
            .extend(["--faults".to_owned(), notes.to_owned()]);
        let tell = &mut self.tell;
        Mesh::up_telling(&plan, &programs, &folder, |line| {
            tell(&format!("mesh: {line}"));
        })
    }
}

fn pattern(fault: &str, rate: u32) -> Pattern {
    let plan = Plan::default();
    let cores = plan.hosts as f64 * f64::from(plan.cores);
    Pattern {
        name: format!("{fault}/steady"),
        rate,
        run: Duration::from_secs_f64(LOAD * cores / f64::from(rate)),
        manner: Manner::Kept,
    }
}

/// One line a request.
fn keep(folder: &Path, steady: &Sent, own: &[Sent]) -> Result<()> {
    let file = folder.join("requests.jsonl");
    let out = File::create(&file).with_context(|| format!("creating {}", file.display()))?;
    let mut out = BufWriter::new(out);
    for record in own.iter().chain([steady]).flat_map(|sent| &sent.records) {
        writeln!(out, "{}", serde_json::to_string(record)?)?;
    }
    Ok(out.flush()?)
}

/// Waits until all hosts are up for weir-control, and all callers hear it.
fn until_whole(mesh: &mut Mesh) -> Result<()> {
    let description = mesh.description();
    let admins: Vec<_> = description
        .callers
        .iter()
        .map(|caller| caller.admin)
        .collect();
    let (admin, hosts) = (description.controls[0].admin, description.hosts.len());
    mesh.processes()
        .wait_until("the mesh as it was", WHOLE, || {
            let up = control::hosts_up(admin, HOSTS).ok()?.len();
            let connected = |admin: &std::net::SocketAddr| {
                http::get(*admin, "/stats?filter=weir_filter_connected")
                    .is_ok_and(|page| page.body.contains("weir_filter_connected: 1"))
            };
            (up == hosts && admins.iter().all(connected)).then_some(())
        })
}
