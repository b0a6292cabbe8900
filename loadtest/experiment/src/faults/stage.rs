// SPDX-License-Identifier: Apache-2.0
//! What a fault acts on: the mesh under load, and where it tells what it measured.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use weir_mesh::{Host, Mesh};

use crate::faults::executions;
use crate::faults::expectation::Length;
use crate::faults::load::{Load, Manner, Pattern, Sent, millis};
use crate::faults::outcome::{Killed, Measured, Outcome, Share};
use crate::faults::record::Record;

const LOOK: Duration = Duration::from_millis(50);
/// Generous: what takes seconds here may take ten times as long on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A mesh under load, for a fault.
pub struct Stage<'a> {
    mesh: &'a mut Mesh,
    length: Length,
    fault: &'static str,
    pattern: Pattern,
    tell: &'a mut dyn FnMut(&str),
    load: Load,
    /// Loads that the fault itself has begun.
    own: Vec<Load>,
    /// And ended.
    ended: Vec<Sent>,
    outcome: Outcome,
}

impl<'a> Stage<'a> {
    pub(crate) fn begin(
        mesh: &'a mut Mesh,
        fault: &'static str,
        length: Length,
        pattern: &Pattern,
        tell: &'a mut dyn FnMut(&str),
    ) -> Result<Self> {
        let (before, harm, after) = (length.before, length.harm, length.after);
        tell(&format!(
            "{fault}: {} requests a second; calm for {} s, harm for {} s, calm for {} s",
            length.rate,
            before.as_secs(),
            harm.as_secs(),
            after.as_secs()
        ));
        let load = Load::start(pattern, mesh.callers())?;
        let mut stage = Self {
            mesh,
            length,
            fault,
            pattern: pattern.clone(),
            tell,
            load,
            own: Vec::new(),
            ended: Vec::new(),
            outcome: Outcome::default(),
        };
        stage.pass(length.before)?;
        Ok(stage)
    }

    /// Lets the calm phase pass and ends all loads: the steady one, and those of the fault.
    pub(crate) fn end(mut self) -> Result<(Sent, Vec<Sent>, Outcome)> {
        self.end_own()?;
        self.pass(self.length.after)?;
        Ok((self.load.finish()?, self.ended, self.outcome))
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

    /// A key that the steady requests ask for, by its number from 0.
    pub(crate) fn key(&self, number: usize) -> String {
        self.pattern.key(number)
    }

    /// The host that has answered most so far: what happens to it matters.
    ///
    /// # Errors
    /// There is none.
    pub fn busiest(&self) -> Result<Host> {
        let records = self.records();
        let answered = |host: &&Host| {
            let by = Some(host.application.to_string());
            records
                .iter()
                .filter(|record| record.answered_by == by)
                .count()
        };
        let busiest = self.mesh.hosts().iter().max_by_key(answered);
        busiest.cloned().context("there are no hosts")
    }

    /// Callers of this mesh try at a second host what takes long: a request may be executed twice.
    pub fn hedges(&mut self) {
        self.outcome.hedged = true;
    }

    /// Kills a host's application and its sidecar.
    ///
    /// # Errors
    /// The system refuses.
    pub fn kill(&mut self, host: &Host) -> Result<()> {
        self.kill_process(host, &host.name)?;
        self.kill_process(host, &sidecar(&host.name))
    }

    /// Kills one of a host's processes. What is at the host is set apart.
    ///
    /// # Errors
    /// As [`Self::kill`].
    pub fn kill_process(&mut self, host: &Host, process: &str) -> Result<()> {
        let application = host.application.to_string();
        let from_ms = millis(self.load.elapsed());
        self.mesh.processes().kill(process)?;
        let killed = &mut self.outcome.killed;
        // Of its two processes the first is the one that counts.
        if !killed
            .iter()
            .any(|killed| killed.application == application)
        {
            killed.push(Killed {
                application,
                sidecar: host.address.to_string(),
                from_ms,
                at_ms: millis(self.load.elapsed()),
            });
        }
        Ok(())
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

    /// Ends the loads that the fault has begun.
    fn end_own(&mut self) -> Result<()> {
        for load in self.own.drain(..) {
            self.ended.push(load.finish()?);
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
        (self.tell)(&format!("{}: harmed", self.fault));
        let began = self.now_ms();
        let until = Instant::now() + self.length.harm;
        while Instant::now() < until {
            each(self)?;
            self.pass(LOOK)?;
        }
        self.outcome.harm_ms = Some((began, self.now_ms()));
        (self.tell)(&format!("{}: the harm is over", self.fault));
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

    /// Tells a figure. More than `at_most` falls short, of seconds where times are held.
    pub fn measured(&mut self, name: &str, value: f64, unit: &'static str, at_most: Option<f64>) {
        let at_most = at_most.filter(|_| unit != "s" || self.length.holds_times);
        self.outcome.measured.push(Measured {
            name: name.to_owned(),
            value,
            unit,
            at_most,
        });
    }

    /// Measures, when all requests have ended, which share of those due from so long after the beginning of the
    /// harm to its end went to a host. More than `at_most` per cent falls short.
    pub fn share(&mut self, host: &Host, after: Duration, at_most: Option<f64>) {
        self.outcome.shares.push(Share {
            host: host.clone(),
            after,
            at_most,
        });
    }

    /// Takes the requests to a caller out of the percentages, as it is the one that is harmed. Each must have one end
    /// nevertheless.
    pub fn set_apart(&mut self, caller: usize) {
        self.outcome.apart = Some(caller);
    }

    /// What one of the files is called by which a host is told to misbehave, and finds it while it is there:
    /// `failing`, `slowness`.
    #[must_use]
    pub fn told(&self, host: &Host, what: &str) -> PathBuf {
        let folder = executions::folder(self.mesh.folder());
        folder.join(format!("{}.{what}", host.application))
    }

    /// Begins another load of one of the callers, that ends before the calm phase. What became of its requests
    /// is no part of the percentages, but each must have one end and be executed at most once.
    ///
    /// # Errors
    /// There is no such caller, or the system gives no threads.
    pub fn also(&mut self, rate: u32, run: Duration, manner: Manner, caller: usize) -> Result<()> {
        let callers = self.mesh.callers();
        let caller = callers.get(caller).context("there is no such caller")?;
        let pattern = Pattern {
            name: format!("{}/own-{}", self.fault, self.own.len()),
            rate,
            run,
            manner,
        };
        self.own
            .push(Load::start(&pattern, std::slice::from_ref(caller))?);
        Ok(())
    }

    /// Milliseconds since the load began, as in [`Record::due_ms`].
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        millis(self.load.elapsed())
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
