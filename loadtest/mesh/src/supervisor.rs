// SPDX-License-Identifier: Apache-2.0
//! The process that a mesh in the background lives in.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use weir_stage::interrupt;
use weir_stage::record::{self, Entry};

use crate::description::Description;
use crate::mesh::{Mesh, RECORD};
use crate::network::{self, Leftovers};
use crate::plan::Plan;
use crate::programs::Programs;

/// What it is to start, in the mesh's folder.
pub(crate) const ORDER: &str = "order.json";
/// Who has died, each with the end of its log.
pub(crate) const DIED: &str = "died";
/// What it says when the mesh is up.
pub(crate) const UP: &str = "up";
const LOCK: &str = "supervisor";
const LOOK: Duration = Duration::from_millis(200);
/// Who holds the lock and has not signed has it for less.
const MOMENT: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(20);

/// What a supervisor is to start.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    pub(crate) plan: Plan,
    pub(crate) programs: Programs,
}

impl Order {
    /// The last one of a folder.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(ORDER);
        let order = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        serde_json::from_slice(&order).with_context(|| format!("reading {}", file.display()))
    }
}

/// Held as long as a mesh is up in a folder: a lock ends with its process, however that ends. Whoever starts or
/// ends one holds it for moments.
pub(crate) struct Held(File);

impl Held {
    /// Takes it. Who held it before is forgotten.
    ///
    /// # Errors
    /// A mesh is up there, with its supervisor's number, or is being started or ended.
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        Self::take_within(MOMENT, folder)
    }

    fn take_within(limit: Duration, folder: &Path) -> Result<Self> {
        let path = folder.join(LOCK);
        let file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        let asked = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => {
                    file.set_len(0)
                        .with_context(|| format!("emptying {}", path.display()))?;
                    return Ok(Self(file));
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("locking {}", path.display()));
                }
            }
            let folder = folder.display();
            if let Some(Entry { id, .. }) = running_by(&path) {
                bail!("a mesh is up in {folder}: its supervisor is process {id}");
            }
            if asked.elapsed() > limit {
                bail!("a mesh is being started or ended in {folder}");
            }
            sleep(RETRY);
        }
    }

    /// From now on it is this process that has a mesh up.
    fn sign(&mut self) -> Result<()> {
        let own = Entry::of("supervisor", std::process::id())?;
        // At once: who reads half of it sees nobody.
        let text = serde_json::to_vec(&own)?;
        self.0
            .write_all(&text)
            .context("writing the supervisor's number")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Who reads the number nevertheless looks whether it still is that process.
        let _ = self.0.set_len(0);
    }
}

/// The supervisor of the mesh that is up in a folder, or is being started. Its number alone would be anybody's
/// once it has ended. The lock is left alone: to look must not keep anybody from it.
pub(crate) fn running(folder: &Path) -> Option<Entry> {
    running_by(&folder.join(LOCK))
}

fn running_by(path: &Path) -> Option<Entry> {
    let signed: Entry = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    signed.lives().then_some(signed)
}

/// Starts the mesh that a folder's `order.json` describes, and keeps it up until a signal comes.
///
/// # Errors
/// A mesh is up there, or this one could not be started.
pub fn supervise(folder: &Path) -> Result<()> {
    // Of its own, so that what becomes of the terminal is nothing to it. It fails only where it is so already.
    let _ = nix::unistd::setsid();
    interrupt::catch()?;
    let mut held = Held::take(folder)?;
    held.sign()?;
    let Order { plan, programs } = Order::read(folder)?;
    let kept = keep_up(&plan, &programs, folder);
    // Whoever waits for a mesh here waits for this file.
    let _ = fs::remove_file(folder.join(Description::FILE));
    kept
}

fn keep_up(plan: &Plan, programs: &Programs, folder: &Path) -> Result<()> {
    let mut mesh = Mesh::up_telling(plan, programs, folder, |what| {
        println!("waiting for {what}")
    })?;
    println!("{UP}");
    while interrupt::check().is_ok() {
        for death in mesh.processes().died()? {
            println!("{death}");
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(folder.join(DIED))?;
            writeln!(file, "{death}")?;
        }
        sleep(LOOK);
    }
    println!("ending");
    Ok(())
}

/// Removes what meshes have left that were killed with their supervisor: processes of the one in this folder,
/// and namespaces and bridges of all. Tells their names, and those of networks that are not `needed` and cannot
/// be removed.
///
/// # Errors
/// Something cannot be removed.
pub(crate) fn remove_leftovers(folder: &Path, needed: bool) -> Result<Leftovers> {
    let mut removed = record::end(&folder.join(RECORD))?;
    let networks = network::remove_leftovers(needed)?;
    removed.extend(networks.removed);
    for file in [Description::FILE, DIED] {
        match fs::remove_file(folder.join(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("removing {file}"));
            }
            _ => {}
        }
    }
    Ok(Leftovers {
        removed,
        kept: networks.kept,
    })
}

/// Where its own words go.
pub(crate) fn log(folder: &Path) -> PathBuf {
    folder.join("logs").join("supervisor.log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_held_the_lock_before_is_not_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(running(folder), None);
        // It has signed, and lives, but holds it no more.
        let own = Entry::of("supervisor", std::process::id()).unwrap();
        fs::write(folder.join(LOCK), serde_json::to_vec(&own).unwrap()).unwrap();
        let mut held = Held::take(folder).unwrap();
        assert_eq!(running(folder), None, "it has not signed");
        held.sign().unwrap();
        assert_eq!(running(folder), Some(own));
        let refusal = Held::take(folder).err().unwrap().to_string();
        assert!(refusal.contains(&std::process::id().to_string()));
        drop(held);
        assert_eq!(running(folder), None);
    }

    #[test]
    fn a_number_that_was_given_to_another_process_is_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let id = std::process::id();
        let signed = format!(r#"{{"name": "supervisor", "id": {id}, "began": 1}}"#);
        for signed in [signed, id.to_string()] {
            fs::write(folder.path().join(LOCK), signed).unwrap();
            assert_eq!(running(folder.path()), None);
        }
    }

    #[test]
    fn who_holds_the_lock_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let held = Held::take(folder.path()).unwrap();
        let error = Held::take_within(Duration::ZERO, folder.path());
        let error = error.err().unwrap().to_string();
        assert!(error.contains("is being started or ended"), "{error}");
        let moment = std::thread::spawn(move || {
            sleep(Duration::from_millis(100));
            drop(held);
        });
        Held::take_within(Duration::from_secs(60), folder.path()).unwrap();
        moment.join().unwrap();
    }
}
