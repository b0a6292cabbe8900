// SPDX-License-Identifier: Apache-2.0
//! Children that do not outlive this process, however it ends.
//!
//! The kernel sends them SIGKILL (prctl(2), `PR_SET_PDEATHSIG`) when the *thread* ends that made them. So a thread
//! that never ends makes them. They ask for it by `setpriv` (util-linux), which becomes the program, because
//! a child's own state cannot be set safely from here.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};

use crate::command::Run;

/// What binds a command that follows its arguments.
pub(crate) const PROGRAM: &str = "setpriv";
pub(crate) const ARGUMENTS: [&str; 2] = ["--pdeathsig", "KILL"];

type Job = Box<dyn FnOnce() + Send>;

static SPAWNER: LazyLock<Mutex<Sender<Job>>> = LazyLock::new(|| {
    let (jobs, queue) = channel::<Job>();
    thread::spawn(move || queue.into_iter().for_each(|job| job()));
    Mutex::new(jobs)
});

/// Whether a program binds as [`PROGRAM`] does: BusyBox has one of that name that does not.
///
/// # Errors
/// It is missing, or does not take the arguments.
pub(crate) fn possible(program: &str) -> Result<()> {
    let mut command = Command::new(program);
    command.args(ARGUMENTS).arg("true");
    command
        .captured()
        .map(drop)
        .context("binding them needs setpriv of util-linux")
}

/// Starts a command that [`through`] has made bound; gives it back to be started again.
pub(crate) fn spawn(mut command: Command) -> (Command, io::Result<Child>) {
    let (answer, started) = channel();
    let job = Box::new(move || {
        let child = command.spawn();
        // Nobody but the caller below has the other end, and it waits.
        let _ = answer.send((command, child));
    });
    let spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    spawner.send(job).expect("the thread never ends");
    started.recv().expect("the job answers")
}

/// The command as arguments of another program, which becomes it.
#[must_use]
pub fn through(program: &str, arguments: &[&str], command: &Command) -> Command {
    let mut wrapped = Command::new(program);
    wrapped
        .args(arguments)
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_that_runs_a_bound_command_will_do() {
        for program in ["false", "/nowhere/setpriv"] {
            let error = possible(program).unwrap_err().to_string();
            assert!(error.contains("setpriv of util-linux"), "{error}");
        }
        // It runs what follows its own arguments, as the real one does.
        assert!(possible("true").is_ok());
    }
}
