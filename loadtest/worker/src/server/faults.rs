// SPDX-License-Identifier: Apache-2.0
//! What tests of faults want of an emulated host: a note of every job that ran, and to be told to fail.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing::warn;

/// The header by which a job is noted; one without it is not.
pub const ID: &str = "x-emulate-id";
/// The header of a request that is answered 500 wherever it goes.
pub const FAIL: &str = "x-emulate-fail";

/// `<address>.executions`, `<address>.failing` and `<address>.slowness` of a folder.
#[derive(Debug)]
pub struct Faults {
    executions: Mutex<Option<File>>,
    failing: PathBuf,
    slowness: PathBuf,
}

impl Faults {
    /// Of the host that listens on `address`. It adds to the notes of an earlier life.
    pub fn open(folder: &Path, address: SocketAddr) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let executions = File::options()
            .create(true)
            .append(true)
            .open(folder.join(format!("{address}.executions")))?;
        Ok(Self {
            executions: Mutex::new(Some(executions)),
            failing: folder.join(format!("{address}.failing")),
            slowness: folder.join(format!("{address}.slowness")),
        })
    }

    /// Whether every job is to be answered 500 at once: while the file is there.
    pub(super) fn fails(&self) -> bool {
        self.failing.exists()
    }

    /// How many times as long a job is to run: what the file says, while it is there.
    pub(super) fn slowness(&self) -> u32 {
        let text = fs::read_to_string(&self.slowness).ok();
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(1)
    }

    /// The job has a core.
    pub(super) fn began(&self, id: &str) {
        self.note("began", id);
    }

    /// It ran to its end.
    pub(super) fn ended(&self, id: &str) {
        self.note("ended", id);
    }

    /// In one write, so that a host that is killed leaves whole lines.
    fn note(&self, what: &str, id: &str) {
        let mut file = self
            .executions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(out) = file.as_mut() else {
            return;
        };
        if let Err(error) = out.write_all(format!("{what} {id}\n").as_bytes()) {
            warn!(%error, "the notes of executions end here");
            *file = None;
        }
    }
}
