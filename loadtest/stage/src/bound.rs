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

type Job = Box<dyn FnOnce() + Send>;

static SPAWNER: LazyLock<Mutex<Sender<Job>>> = LazyLock::new(|| {
    let (jobs, queue) = channel::<Job>();
    thread::spawn(move || queue.into_iter().for_each(|job| job()));
    Mutex::new(jobs)
});

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
