// SPDX-License-Identifier: Apache-2.0
//! What was found, on disk, before anything is changed: whoever comes after a killed governor can put it back.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::Error;
use super::cpufreq::{Driver, Settings};
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
        let failed = |source| Error::State {
            path: folder.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let lock = lock(folder)?;
        let boot = line(&root.path("proc/sys/kernel/random/boot_id")).unwrap_or_default();
        let path = folder.join(FOUND);
        let read = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| Error::State {
                path: path.clone(),
                source: std::io::Error::other(format!(
                    "{error}; remove it if nothing is to be put back"
                )),
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Record::default(),
            Err(source) => return Err(Error::State { path, source }),
        };
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

    /// This one has been put back. On disk when this returns.
    pub fn forget(&mut self, name: &str) -> Result<(), Error> {
        self.record.policies.remove(name);
        self.save()
    }

    fn save(&self) -> Result<(), Error> {
        let path = self.folder.join(FOUND);
        self.write(&path)
            .map_err(|source| Error::State { path, source })
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let folder = File::open(&self.folder)?;
        if self.record.policies.is_empty() {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
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

fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join("lock");
    let failed = |source| Error::State {
        path: path.clone(),
        source,
    };
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(failed)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut holder = String::new();
        // Only for the message.
        let _ = file.read_to_string(&mut holder);
        return Err(Error::Held {
            folder: folder.to_owned(),
            pid: holder.trim().to_owned(),
        });
    }
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
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
        state.forget("policy0").unwrap();
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
}
