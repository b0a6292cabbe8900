// SPDX-License-Identifier: Apache-2.0
//! A second process that puts everything back when the governor is gone, in whatever way: a frozen job waits for
//! nobody, and the service has its cores.
//!
//! ```text
//!  governor ── pipe ──> weir-governor watch      "done": everything is back already
//!                                                end of file without it: restore
//! ```

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tracing::{error, warn};

use crate::restore::restore;
use crate::root::Root;
use crate::state;

/// Written when nothing is left to be done.
const DONE: &[u8] = b"done";
/// A process that is being killed keeps the lock for some moments more.
const DYING: Duration = Duration::from_secs(10);
/// For a watchdog that has nothing to do any more.
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(1);

/// The other process, seen from the governor.
#[derive(Debug)]
pub struct Watchdog {
    root: Root,
    state: PathBuf,
    child: Child,
}

impl Watchdog {
    /// Starts it. Nothing that concerns the governor alone, as Ctrl-C, reaches it.
    pub fn start(root: &Root, state: &Path) -> std::io::Result<Watchdog> {
        Ok(Watchdog {
            root: root.clone(),
            state: state.to_owned(),
            child: start(root, state)?,
        })
    }

    /// Once a second: starts another one where somebody has killed it.
    pub fn look(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        warn!("the watchdog was killed; another one starts");
        match start(&self.root, &self.state) {
            Ok(child) => self.child = child,
            Err(error) => warn!(%error, "it does not start"),
        }
    }

    /// Everything is back.
    pub fn end(mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            // It may be gone: there is nothing left for it to do.
            let _ = pipe.write_all(DONE);
        }
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(AGAIN);
        }
        // Somebody has stopped it: nothing is left to be put back.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(root: &Root, state: &Path) -> std::io::Result<Child> {
    // The program that runs, also where another version has taken its place in the file system.
    Command::new("/proc/self/exe")
        .arg0("weir-governor")
        .arg("--root")
        .arg(root.path(""))
        .args(["watch", "--governor", &std::process::id().to_string()])
        .arg("--state")
        .arg(state)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Waits until the governor with this process id is gone; what could not be put back.
pub fn watch(
    pipe: &mut impl Read,
    governor: u32,
    root: &Root,
    state: &Path,
) -> Result<Vec<String>, state::Error> {
    let mut said = Vec::new();
    while let Err(error) = pipe.read_to_end(&mut said) {
        if error.kind() != ErrorKind::Interrupted {
            error!(%error, "the governor is not heard");
            break;
        }
    }
    if said == DONE {
        return Ok(Vec::new());
    }
    let since = Instant::now();
    loop {
        match restore(root, state) {
            Err(state::Error::Held { pid, .. })
                if pid == governor.to_string() && since.elapsed() < DYING =>
            {
                std::thread::sleep(AGAIN);
            }
            // Another one governs by now, and has put everything back before.
            Err(state::Error::Held { pid, .. }) if pid != governor.to_string() => {
                return Ok(Vec::new());
            }
            done => {
                warn!("the governor is gone without a word");
                return done;
            }
        }
    }
}
