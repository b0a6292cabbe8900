// SPDX-License-Identifier: Apache-2.0
//! Settings as they were found, on disk before anything is changed: the next process after a killed governor can put
//! them back.
//!
//! ```text
//!  state directory/  lock        held by one governor at a time, with its process id
//!                    FILE.json   a Remembered: how things were found
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::FileError;
use crate::root::{Root, line};

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another governor is running.
    #[error("{}: held by process {pid}, which governs already", folder.display())]
    Held {
        /// The state directory.
        folder: PathBuf,
        /// As the holder wrote it.
        pid: String,
    },
}

/// The state directory, held by one process at a time.
#[derive(Clone, Debug)]
pub struct Held {
    folder: PathBuf,
    /// Of the kernel: after another boot nothing is true of what was found before.
    boot: String,
    /// Whose lock is gone when it closes, also when the process is killed.
    _lock: Arc<Lock>,
}

/// For what the directory is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For as long as somebody governs.
    Govern,
    /// For as long as it takes to put things back: who wants to govern waits for it.
    Restore,
}

/// After so long whoever restores is stuck.
const RESTORING: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(5);

impl Held {
    /// Makes the directory and takes it.
    pub fn take(folder: &Path, root: &Root) -> Result<Held, Error> {
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder);
        made.map_err(FileError::of(folder))?;
        Held::open(folder, root, Purpose::Govern)
    }

    /// Takes a directory that a governor has used, to put things back; an error where none has.
    pub fn left(folder: &Path, root: &Root) -> Result<Held, Error> {
        Held::open(folder, root, Purpose::Restore)
    }

    fn open(folder: &Path, root: &Root, purpose: Purpose) -> Result<Held, Error> {
        only_ours(folder).map_err(FileError::of(folder))?;
        let lock = lock(folder, purpose)?;
        let boot = root.path("proc/sys/kernel/random/boot_id");
        Ok(Held {
            folder: folder.to_owned(),
            boot: line(&boot).map_err(FileError::of(&boot))?,
            _lock: Arc::new(lock),
        })
    }

    /// Its place.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Of the kernel that runs.
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// The record that a former run has left in this file.
    pub fn remembered<T: DeserializeOwned + Serialize>(
        &self,
        file: &str,
    ) -> Result<Remembered<T>, Error> {
        let path = self.folder.join(file);
        let read = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| broken(&path, &error))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Record::new(&self.boot),
            Err(source) => return Err(FileError::of(&path)(source).into()),
        };
        let record = match read.boot == self.boot {
            true => read,
            false => Record::new(&self.boot),
        };
        Ok(Remembered {
            held: self.clone(),
            path,
            record,
        })
    }
}

/// A file whose content cannot be.
pub fn broken(path: &Path, reason: &dyn std::fmt::Display) -> Error {
    let reason = format!("{reason}; remove it if nothing is to be put back");
    FileError::of(path)(std::io::Error::other(reason)).into()
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record<T> {
    boot: String,
    /// By name.
    found: BTreeMap<String, T>,
}

impl<T> Record<T> {
    fn new(boot: &str) -> Self {
        Self {
            boot: boot.to_owned(),
            found: BTreeMap::new(),
        }
    }
}

/// How things were found, by name; in a file that is there while something is to be put back.
#[derive(Debug)]
pub struct Remembered<T> {
    held: Held,
    path: PathBuf,
    record: Record<T>,
}

impl<T: Serialize> Remembered<T> {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The settings to put back.
    pub fn found(&self) -> &BTreeMap<String, T> {
        &self.record.found
    }

    /// Remembers; what is remembered already stays, for it is older than anything that was changed. On disk when
    /// this returns; where it fails nothing of it is remembered.
    pub fn remember(&mut self, found: impl IntoIterator<Item = (String, T)>) -> Result<(), Error> {
        let mut new = Vec::new();
        for (name, found) in found {
            if let Entry::Vacant(place) = self.record.found.entry(name) {
                new.push(place.key().clone());
                place.insert(found);
            }
        }
        let saved = self.save();
        if saved.is_err() {
            self.record.found.retain(|name, _| !new.contains(name));
        }
        saved
    }

    /// Remembers this in place of what was, which somebody else has changed since. On disk when this returns.
    pub fn renew(&mut self, name: &str, found: T) -> Result<(), Error> {
        self.record.found.insert(name.to_owned(), found);
        self.save()
    }

    /// These have been put back. On disk when this returns.
    pub fn forget(&mut self, names: &[String]) -> Result<(), Error> {
        self.record.found.retain(|name, _| !names.contains(name));
        self.save()
    }

    fn save(&self) -> Result<(), Error> {
        Ok(self.write().map_err(FileError::of(&self.path))?)
    }

    fn write(&self) -> std::io::Result<()> {
        let folder = File::open(&self.held.folder)?;
        if self.record.found.is_empty() {
            match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => return folder.sync_all(),
            }
        }
        let partial = self.path.with_extension("json.partial");
        let mut file = File::create(&partial)?;
        file.write_all(&serde_json::to_vec_pretty(&self.record)?)?;
        file.sync_all()?;
        std::fs::rename(&partial, &self.path)?;
        folder.sync_all()
    }
}

/// Its content is written to the kernel's files, or it is written to as root: nobody else may put anything there.
pub(crate) fn only_ours(folder: &Path) -> std::io::Result<()> {
    let there = std::fs::symlink_metadata(folder)?;
    let own = rustix::process::geteuid().as_raw();
    let reason = if !there.is_dir() {
        "not a directory"
    } else if ![0, own].contains(&there.uid()) {
        "belongs to another user"
    } else if there.mode() & 0o022 != 0 {
        "others may write there; chmod go-w, or name another directory"
    } else {
        return Ok(());
    };
    Err(std::io::Error::new(ErrorKind::PermissionDenied, reason))
}

/// Says in the lock that it is held for a moment only.
const RESTORES: &str = "restores";

/// The locked file.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // To close it is not enough: a child that was forked and has not yet become another program has it open, too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Waits while somebody restores.
fn lock(folder: &Path, purpose: Purpose) -> Result<Lock, Error> {
    let path = folder.join("lock");
    let failed = FileError::of(&path);
    let mut file = File::options()
        .create(purpose == Purpose::Govern)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(&failed)?;
    // A process that can open a file can lock it.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
        .map_err(&failed)?;
    let since = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK) => {}
            Err(errno) => return Err(failed(errno.into()).into()),
        }
        // Only for the message, and to see whether it is worth waiting.
        let holder = std::fs::read_to_string(&path).unwrap_or_default();
        let mut words = holder.split_whitespace();
        let pid = words.next().unwrap_or_default().to_owned();
        // Before that is written, whoever has just taken it may be either.
        let restores = pid.is_empty() || words.next() == Some(RESTORES) || is_gone(&pid);
        if !restores || since.elapsed() > RESTORING {
            return Err(Error::Held {
                folder: folder.to_owned(),
                pid,
            });
        }
        std::thread::sleep(AGAIN);
    }
    let doing = match purpose {
        Purpose::Govern => "",
        Purpose::Restore => RESTORES,
    };
    file.set_len(0).map_err(&failed)?;
    // At once: whoever reads the number alone takes it for another governor.
    let line = format!("{} {doing}\n", std::process::id());
    file.write_all(line.as_bytes()).map_err(&failed)?;
    Ok(Lock(file))
}

/// A killed process stands in the lock until the next holder has written itself there.
fn is_gone(pid: &str) -> bool {
    let pid = pid.parse().ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "found.json";

    fn found(value: u32) -> BTreeMap<String, u32> {
        BTreeMap::from([("policy0".to_owned(), value)])
    }

    fn remembered(folder: &Path, root: &Root) -> Remembered<u32> {
        Held::take(folder, root).unwrap().remembered(FILE).unwrap()
    }

    fn root(boot: &str) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("proc/sys/kernel/random/boot_id");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("{boot}\n")).unwrap();
        let root = Root::new(folder.path());
        (folder, root)
    }

    #[test]
    fn what_was_found_first_is_the_truth_until_it_is_forgotten() {
        let (kernel, root) = root("a");
        let folder = kernel.path().join("run");
        let mut left = remembered(&folder, &root);
        left.remember(found(1)).unwrap();
        drop(left);
        let mut left = remembered(&folder, &root);
        left.remember(found(2)).unwrap();
        assert_eq!(left.found(), &found(1));
        left.forget(&["policy0".to_owned()]).unwrap();
        assert!(!folder.join(FILE).exists());
    }

    #[test]
    fn after_another_boot_nothing_is_remembered() {
        let (kernel, first) = root("a");
        let folder = kernel.path().join("run");
        remembered(&folder, &first).remember(found(1)).unwrap();
        let (_second, second) = root("b");
        assert!(remembered(&folder, &second).found().is_empty());
    }

    #[test]
    fn who_wants_to_govern_waits_while_somebody_restores() {
        let (kernel, root) = root("a");
        let folder = kernel.path().join("run");
        drop(Held::take(&folder, &root).unwrap());
        let restoring = Held::left(&folder, &root).unwrap();
        let waiting = std::thread::spawn({
            let (folder, root) = (folder.clone(), root.clone());
            move || Held::take(&folder, &root).map(drop)
        });
        // A killed process is in the lock until the next one has written itself there.
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        std::fs::write(folder.join("lock"), format!("{}\n", child.id())).unwrap();
        drop(restoring);
        waiting.join().unwrap().unwrap();
    }

    #[test]
    fn a_directory_is_held_by_one_and_the_second_is_told_by_whom() {
        let (kernel, root) = root("a");
        let folder = kernel.path().join("run");
        let _held = Held::take(&folder, &root).unwrap();
        let error = Held::take(&folder, &root).unwrap_err().to_string();
        assert!(
            error.contains(&format!("process {}", std::process::id())),
            "{error}"
        );
    }

    #[test]
    fn a_broken_file_is_refused_and_kept() {
        let (kernel, root) = root("a");
        let folder = kernel.path().join("run");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(FILE), "{").unwrap();
        let held = Held::take(&folder, &root).unwrap();
        let error = held.remembered::<u32>(FILE).unwrap_err().to_string();
        assert!(
            error.contains("found.json") && error.contains("remove it"),
            "{error}"
        );
        assert!(folder.join(FILE).exists());
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let (kernel, root) = root("a");
        let folder = kernel.path().join("run");
        drop(Held::take(&folder, &root).unwrap());
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o1777)).unwrap();
        let error = Held::take(&folder, &root).unwrap_err().to_string();
        assert!(error.contains("others may write there"), "{error}");
        let link = kernel.path().join("link");
        std::os::unix::fs::symlink("run", &link).unwrap();
        let error = Held::take(&link, &root).unwrap_err().to_string();
        assert!(error.contains("not a directory"), "{error}");
    }

    #[test]
    fn nobody_else_can_lock_it() {
        let (kernel, root) = root("a");
        let folder = kernel.path().join("run");
        let path = folder.join("lock");
        let mode = || std::fs::metadata(&path).unwrap().mode() & 0o777;
        drop(Held::take(&folder, &root).unwrap());
        assert_eq!(mode(), 0o600);
        // As an earlier version made it.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        drop(Held::left(&folder, &root).unwrap());
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn without_the_boot_nothing_can_be_remembered() {
        let (kernel, root) = root("a");
        std::fs::remove_file(root.path("proc/sys/kernel/random/boot_id")).unwrap();
        let error = Held::take(&kernel.path().join("run"), &root).unwrap_err();
        assert!(error.to_string().contains("boot_id"), "{error}");
    }
}
