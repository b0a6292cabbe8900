// SPDX-License-Identifier: Apache-2.0
//! What is known of a job on disk, in a folder of its own: enough for a governor that comes after a killed one, at
//! whatever moment that was killed.
//!
//! | `started` | `ended` | `lock` | |
//! |---|---|---|---|
//! | – | – | free | waits |
//! | asked for | – | free | waits: no keeper has taken it, and none will, for it asks under the lock |
//! | any | any | held | its keeper lives, and so does the job |
//! | taken | – | free | its keeper was killed; what came from it may live |
//! | any | there | free | has ended |

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::spec::Source;
use crate::state::only_ours;

/// The folder of all jobs, in the state directory.
pub(super) const JOBS: &str = "jobs";

/// A job that shall be started, or was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Started {
    /// Of the kernel: after another boot nothing of it lives.
    pub(super) boot: String,
    /// What it was when it was started.
    pub(super) source: Source,
    /// With so many.
    pub(super) threads: u32,
    /// Its cgroup, by its path below the mount; none where the machine has none that could be written.
    pub(super) cgroup: Option<String>,
    /// Files into which a process writes 0 to be in it.
    pub(super) doors: Vec<PathBuf>,
    /// As cpusets are written: where it begins, if it has no cgroup.
    pub(super) cores: String,
    /// Where what it writes is added.
    pub(super) log: PathBuf,
    /// Who has taken it.
    pub(super) keeper: Option<Process>,
}

impl Started {
    /// For a message: `, kept by process 7`; nothing where nobody has said so.
    pub(super) fn kept_by(&self) -> String {
        let keeper = self.keeper.as_ref();
        keeper.map_or(String::new(), |keeper| {
            format!(", kept by process {}", keeper.pid)
        })
    }
}

/// A process that no other is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Process {
    /// Its number.
    pub(super) pid: i32,
    /// In clock ticks since boot: field 22 of its `stat`.
    pub(super) started: u64,
}

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ended {
    /// What it was.
    pub(super) source: Source,
    /// It was started with so many.
    pub(super) threads: u32,
    /// Its exit code, or 128 and the signal; none where that is not known.
    pub(super) code: Option<i32>,
    /// Why there is no code.
    pub(super) trouble: Option<String>,
    /// It used so much in all, where that is known.
    pub(super) cpu: Option<Duration>,
}

impl Ended {
    /// It did what it should, as far as anybody can tell.
    pub(super) fn is_well(&self) -> bool {
        self.trouble.is_none() && self.code.is_none_or(|code| code == 0)
    }
}

/// A job's folder. It stays, and so does its lock, so that there are never two of them.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    lock: File,
}

impl Folder {
    /// Makes it where it is missing.
    pub(super) fn make(path: &Path) -> io::Result<Folder> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(path);
        made.map_err(named(path))?;
        Folder::open(path)
    }

    /// Of a job that was started here once.
    pub(super) fn open(path: &Path) -> io::Result<Folder> {
        only_ours(path)?;
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        let lock = path.join("lock");
        Ok(Folder {
            path: path.to_owned(),
            lock: options.open(&lock).map_err(named(&lock))?,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// None: a keeper holds it.
    pub(super) fn hold(&self) -> io::Result<Option<Held<'_>>> {
        match flock(&self.lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Held(self))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Holds it once nobody else does.
    pub(super) fn wait(&self) -> io::Result<Held<'_>> {
        loop {
            match flock(&self.lock, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Held(self)),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// What was asked for, and by whom it was taken.
    pub(super) fn started(&self) -> io::Result<Option<Started>> {
        self.read("started")
    }

    /// How it has ended; while somebody holds the lock it has not.
    pub(super) fn ended(&self) -> io::Result<Option<Ended>> {
        self.read("ended")
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let path = self.path.join(name);
        let broken = |error: &dyn std::fmt::Display| {
            let shown = path.display();
            io::Error::other(format!(
                "{shown}: {error}; remove it if the job shall be as if it had never been"
            ))
        };
        match std::fs::read(&path) {
            Ok(bytes) => {
                Some(serde_json::from_slice(&bytes).map_err(|error| broken(&error))).transpose()
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(broken(&error)),
        }
    }
}

/// Says which file it is about.
fn named(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A job's folder while nobody else changes it.
#[derive(Debug)]
pub(super) struct Held<'a>(&'a Folder);

impl Held<'_> {
    /// On disk when this returns.
    pub(super) fn start(&self, started: &Started) -> io::Result<()> {
        self.write("started", started)
    }

    /// On disk when this returns.
    pub(super) fn end(&self, ended: &Ended) -> io::Result<()> {
        self.write("ended", ended)
    }

    /// No keeper takes it from here on.
    pub(super) fn unask(&self) -> io::Result<()> {
        self.remove("started")
    }

    /// It may be started again. On disk when this returns.
    pub(super) fn forget(&self) -> io::Result<()> {
        self.remove("started")?;
        self.remove("ended")
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.0.path.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(named(&path)(error)),
            _ => self.sync(),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let synced = File::open(&self.0.path).and_then(|folder| folder.sync_all());
        synced.map_err(named(&self.0.path))
    }

    fn write(&self, name: &str, what: &impl Serialize) -> io::Result<()> {
        let partial = self.0.path.join("partial");
        let mut options = File::options();
        options.create(true).truncate(true).write(true).mode(0o600);
        let text = serde_json::to_vec_pretty(what)?;
        let written = options.open(&partial).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        written.map_err(named(&partial))?;
        let path = self.0.path.join(name);
        std::fs::rename(&partial, &path).map_err(named(&path))?;
        self.sync()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // A file that is open cannot but be unlocked.
        let _ = flock(&self.0.lock, FlockOperation::Unlock);
    }
}
