// SPDX-License-Identifier: Apache-2.0
//! What was found, on disk, before anything is changed: whoever comes after a killed governor can put it back.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::Error;
use super::cpufreq::{Driver, Files, Settings};
use crate::root::{Root, line};

/// What one policy was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// How it is set since.
    pub driver: Driver,
    /// As it was.
    pub settings: Settings,
}

/// The file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// Of the kernel: after another boot nothing of this is true.
    boot: String,
    policies: BTreeMap<String, Found>,
}

/// The state directory, held by one governor at a time.
#[derive(Debug)]
pub struct State {
    folder: PathBuf,
    record: Record,
    /// Whose lock is gone when it closes, also when the process is killed.
    _lock: File,
}

impl State {
    /// Makes the directory, takes it, and reads what a former run has left.
    pub fn take(folder: &Path, root: &Root) -> Result<State, Error> {
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder);
        made.map_err(failed(folder))?;
        State::open(folder, root, true)
    }

    /// The same of a directory that a governor has used; an error where none has.
    pub fn left(folder: &Path, root: &Root) -> Result<State, Error> {
        State::open(folder, root, false)
    }

    fn open(folder: &Path, root: &Root, create: bool) -> Result<State, Error> {
        only_ours(folder).map_err(failed(folder))?;
        let lock = lock(folder, create)?;
        let boot = root.path("proc/sys/kernel/random/boot_id");
        let boot = line(&boot).map_err(failed(&boot))?;
        let path = folder.join(FOUND);
        let broken = |reason: &dyn std::fmt::Display| {
            let reason = format!("{reason}; remove it if nothing is to be put back");
            failed(&path)(std::io::Error::other(reason))
        };
        let read: Record = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| broken(&error))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Record::default(),
            Err(source) => return Err(failed(&path)(source)),
        };
        if let Some(name) = read.policies.keys().find(|n| Files::number(n).is_none()) {
            return Err(broken(&format!("{name:?} is no policy")));
        }
        let record = match read.boot == boot {
            true => read,
            false => Record {
                boot,
                ..Record::default()
            },
        };
        Ok(State {
            folder: folder.to_owned(),
            record,
            _lock: lock,
        })
    }

    /// What is remembered of each policy.
    pub fn found(&self) -> &BTreeMap<String, Found> {
        &self.record.policies
    }

    /// Remembers; what is remembered already stays, for it is older than anything that was changed. On disk when
    /// this returns.
    pub fn remember(&mut self, found: BTreeMap<String, Found>) -> Result<(), Error> {
        for (name, found) in found {
            self.record.policies.entry(name).or_insert(found);
        }
        self.save()
    }

    /// These have been put back. On disk when this returns.
    pub fn forget(&mut self, names: &[String]) -> Result<(), Error> {
        self.record.policies.retain(|name, _| !names.contains(name));
        self.save()
    }

    fn save(&self) -> Result<(), Error> {
        let path = self.folder.join(FOUND);
        self.write(&path).map_err(failed(&path))
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let folder = File::open(&self.folder)?;
        if self.record.policies.is_empty() {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => return folder.sync_all(),
            }
        }
        let partial = self.folder.join("found.json.partial");
        let mut file = File::create(&partial)?;
        file.write_all(&serde_json::to_vec_pretty(&self.record)?)?;
        file.sync_all()?;
        std::fs::rename(&partial, path)?;
        folder.sync_all()
    }
}

const FOUND: &str = "found.json";

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    |source| Error::State {
        path: path.to_owned(),
        source,
    }
}

/// What is read there is written to the kernel's files: nobody else may have put it there.
pub(crate) fn only_ours(folder: &Path) -> std::io::Result<()> {
    let there = std::fs::symlink_metadata(folder)?;
    let own = rustix::process::geteuid().as_raw();
    let reason = if !there.is_dir() {
        "not a directory"
    } else if ![0, own].contains(&there.uid()) {
        "belongs to another user"
    } else if there.mode() & 0o022 != 0 {
        "others may write there; chmod go-w, or name another state_directory"
    } else {
        return Ok(());
    };
    Err(std::io::Error::new(ErrorKind::PermissionDenied, reason))
}

fn lock(folder: &Path, create: bool) -> Result<File, Error> {
    let path = folder.join("lock");
    let failed = failed(&path);
    let mut file = File::options()
        .create(create)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(&failed)?;
    // Whoever can open a file can lock it.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
        .map_err(&failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            // Only for the message.
            let _ = file.read_to_string(&mut holder);
            return Err(Error::Held {
                folder: folder.to_owned(),
                pid: holder.trim().to_owned(),
            });
        }
        Err(errno) => return Err(failed(errno.into())),
    }
    file.set_len(0).map_err(&failed)?;
    writeln!(file, "{}", std::process::id()).map_err(&failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(min: u32) -> BTreeMap<String, Found> {
        let settings = Settings {
            governor: "schedutil".into(),
            setspeed: None,
            min,
            max: 9,
        };
        let found = Found {
            driver: Driver::Clamp,
            settings,
        };
        BTreeMap::from([("policy0".to_owned(), found)])
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
        let mut state = State::take(&folder, &root).unwrap();
        state.remember(found(1)).unwrap();
        drop(state);
        let mut state = State::take(&folder, &root).unwrap();
        state.remember(found(2)).unwrap();
        assert_eq!(state.found(), &found(1));
        state.forget(&["policy0".to_owned()]).unwrap();
        assert!(!folder.join(FOUND).exists());
    }

    #[test]
    fn after_another_boot_nothing_is_remembered() {
        let (kernel, first) = root("a");
        let folder = kernel.path().join("run");
        State::take(&folder, &first)
            .unwrap()
            .remember(found(1))
            .unwrap();
        let (_second, second) = root("b");
        assert!(State::take(&folder, &second).unwrap().found().is_empty());
    }

    #[test]
    fn a_directory_is_held_by_one_and_the_second_is_told_by_whom() {
        let (kernel, root) = root("a");
        let folder = kernel.path().join("run");
        let _held = State::take(&folder, &root).unwrap();
        let error = State::take(&folder, &root).unwrap_err().to_string();
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
        std::fs::write(folder.join(FOUND), "{").unwrap();
        let error = State::take(&folder, &root).unwrap_err().to_string();
        assert!(
            error.contains("found.json") && error.contains("remove it"),
            "{error}"
        );
        assert!(folder.join(FOUND).exists());
    }

    #[test]
    fn names_that_are_no_policies_are_refused() {
        let (kernel, root) = root("a");
        let folder = kernel.path().join("run");
        let mut state = State::take(&folder, &root).unwrap();
        let odd = found(1).into_values().next().unwrap();
        let odd = BTreeMap::from([("../policy0".to_owned(), odd)]);
        state.remember(odd).unwrap();
        drop(state);
        let error = State::take(&folder, &root).unwrap_err().to_string();
        assert!(error.contains("\"../policy0\" is no policy"), "{error}");
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let (kernel, root) = root("a");
        let folder = kernel.path().join("run");
        drop(State::take(&folder, &root).unwrap());
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o1777)).unwrap();
        let error = State::take(&folder, &root).unwrap_err().to_string();
        assert!(error.contains("others may write there"), "{error}");
        let link = kernel.path().join("link");
        std::os::unix::fs::symlink("run", &link).unwrap();
        let error = State::take(&link, &root).unwrap_err().to_string();
        assert!(error.contains("not a directory"), "{error}");
    }

    #[test]
    fn nobody_else_can_lock_it() {
        let (kernel, root) = root("a");
        let folder = kernel.path().join("run");
        let path = folder.join("lock");
        let mode = || std::fs::metadata(&path).unwrap().mode() & 0o777;
        drop(State::take(&folder, &root).unwrap());
        assert_eq!(mode(), 0o600);
        // As an earlier version made it.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        drop(State::left(&folder, &root).unwrap());
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn without_the_boot_nothing_can_be_remembered() {
        let (kernel, root) = root("a");
        std::fs::remove_file(root.path("proc/sys/kernel/random/boot_id")).unwrap();
        let error = State::take(&kernel.path().join("run"), &root).unwrap_err();
        assert!(error.to_string().contains("boot_id"), "{error}");
    }
}
