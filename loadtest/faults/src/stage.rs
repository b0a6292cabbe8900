// SPDX-License-Identifier: Apache-2.0
//! What a fault acts on: the mesh under load, and where it tells what it measured.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use serde::Serialize;
use weir_mesh::{Host, Mesh};

use crate::fault::Length;
use crate::load::{Load, Manner, Pattern, Sent};
use crate::record::Record;

const LOOK: Duration = Duration::from_millis(50);
/// Generous: what takes seconds here may take ten times as long on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A mesh under load, for a fault.
pub struct Stage<'a> {
    mesh: &'a mut Mesh,
    length: Length,
    fault: &'static str,
    load: Load,
    /// Loads that the fault itself has begun.
    own: Vec<Load>,
    outcome: Outcome,
}

/// What a fault did and measured.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Outcome {
    /// Figures of the fault itself.
    pub measured: Vec<Measured>,
    /// Addresses of hosts' applications that were killed, or whose sidecars were.
    pub killed: BTreeSet<String>,
    /// When the harm began and ended, milliseconds since the load began.
    pub harm_ms: Option<(u64, u64)>,
}

/// A figure that a fault measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// What it is.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what: `s`, `%`.
    pub unit: &'static str,
    /// More than this falls short.
    pub at_most: Option<f64>,
}

impl<'a> Stage<'a> {
    pub(crate) fn begin(
        mesh: &'a mut Mesh,
        fault: &'static str,
        length: Length,
        pattern: &Pattern,
    ) -> Result<Self> {
        let load = Load::start(pattern, mesh.callers())?;
        let mut stage = Self {
            mesh,
            length,
            fault,
            load,
            own: Vec::new(),
            outcome: Outcome::default(),
        };
        stage.pass(length.before)?;
        Ok(stage)
    }

    /// Lets the calm phase pass and ends all loads: the steady one, and those of the fault.
    pub(crate) fn end(mut self) -> Result<(Sent, Vec<Sent>, Outcome)> {
        self.pass(self.length.after)?;
        let own = self.own.into_iter().map(Load::finish);
        let own = own.collect::<Result<_>>()?;
        Ok((self.load.finish()?, own, self.outcome))
    }

    /// The mesh, to be harmed and made whole again.
    pub fn mesh(&mut self) -> &mut Mesh {
        self.mesh
    }

    /// How long it is played.
    #[must_use]
    pub fn length(&self) -> Length {
        self.length
    }

    /// A host, by its number from 0.
    #[must_use]
    pub fn host(&self, number: usize) -> Host {
        self.mesh.hosts()[number].clone()
    }

    /// Kills a host's application and its sidecar.
    ///
    /// # Errors
    /// The system refuses.
    pub fn kill(&mut self, host: &Host) -> Result<()> {
        self.kill_process(host, &host.name)?;
        self.kill_process(host, &sidecar(&host.name))
    }

    /// Kills one of a host's processes. What it had begun is set apart from then on.
    ///
    /// # Errors
    /// As [`Self::kill`].
    pub fn kill_process(&mut self, host: &Host, process: &str) -> Result<()> {
        self.outcome.killed.insert(host.application.to_string());
        self.mesh.processes().kill(process)
    }

    /// Starts a host's processes again.
    ///
    /// # Errors
    /// They live, or cannot be started.
    pub fn again(&mut self, host: &Host) -> Result<()> {
        for process in [host.name.clone(), sidecar(&host.name)] {
            self.mesh.processes().again(&process)?;
        }
        Ok(())
    }

    /// Sends a signal to a host's application and sidecar: SIGSTOP freezes it.
    ///
    /// # Errors
    /// One has ended.
    pub fn signal(&mut self, host: &Host, signal: Signal) -> Result<()> {
        for process in [host.name.clone(), sidecar(&host.name)] {
            self.mesh.processes().signal(&process, signal)?;
        }
        Ok(())
    }

    /// Lets the time of the harm pass, while processes live that were not killed on purpose.
    ///
    /// # Errors
    /// One died, or a signal has come.
    pub fn harm(&mut self) -> Result<()> {
        self.harm_with(|_| Ok(()))
    }

    /// The same, doing something every 50 ms.
    ///
    /// # Errors
    /// As [`Self::harm`], and what `each` finds.
    pub fn harm_with(&mut self, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let began = self.now_ms();
        let until = Instant::now() + self.length.harm;
        while Instant::now() < until {
            each(self)?;
            self.pass(LOOK)?;
        }
        self.outcome.harm_ms = Some((began, self.now_ms()));
        Ok(())
    }

    /// Lets time pass, while processes live that were not killed on purpose.
    ///
    /// # Errors
    /// One died, or a signal has come.
    pub fn pass(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        loop {
            self.mesh.processes().check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Waits until `look` finds something; returns it and how long that took.
    ///
    /// # Errors
    /// It did not happen within a minute, a process died, or a signal has come.
    pub fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&Mesh) -> Option<T>,
    ) -> Result<(T, Duration)> {
        let began = Instant::now();
        loop {
            if let Some(found) = look(self.mesh) {
                return Ok((found, began.elapsed()));
            }
            ensure!(began.elapsed() < LIMIT, "{what} did not happen");
            self.pass(LOOK)?;
        }
    }

    /// Tells a figure. More than `at_most` falls short.
    pub fn measured(&mut self, name: &str, value: f64, unit: &'static str, at_most: Option<f64>) {
        self.outcome.measured.push(Measured {
            name: name.to_owned(),
            value,
            unit,
            at_most,
        });
    }

    /// Begins another load, of some of the callers, that ends with the steady one. What became of its requests
    /// is no part of the percentages, but each must have one end and be executed at most once.
    ///
    /// # Errors
    /// There is no such caller, or the system gives no threads.
    pub fn also(&mut self, rate: u32, manner: Manner, caller: usize) -> Result<()> {
        let callers = self.mesh.callers();
        let caller = callers.get(caller).context("there is no such caller")?;
        let pattern = Pattern {
            name: format!("{}/own{}", self.fault, self.own.len()),
            rate,
            run: Duration::from_millis(5),
            manner,
        };
        self.own
            .push(Load::start(&pattern, std::slice::from_ref(caller))?);
        Ok(())
    }

    /// Milliseconds since the load began, as in [`Record::due_ms`].
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        crate::load::millis(self.load.elapsed())
    }

    /// What became of the steady requests that have ended so far.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.load.records()
    }
}

/// The process of a host's or caller's sidecar.
#[must_use]
pub fn sidecar(name: &str) -> String {
    format!("{name}-sidecar")
}
