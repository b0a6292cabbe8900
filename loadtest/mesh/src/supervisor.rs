// SPDX-License-Identifier: Apache-2.0
//! The process that a mesh in the background lives in.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use weir_stage::{interrupt, record};

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

/// Held as long as a mesh is up in a folder: a lock ends with its process, however that ends.
pub(crate) struct Held(File);

impl Held {
    /// Takes it.
    ///
    /// # Errors
    /// A mesh is up there, with its supervisor's number.
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        let path = folder.join(LOCK);
        let file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => {
                let who = number(&path).map_or("unknown".to_owned(), |id| id.to_string());
                bail!(
                    "a mesh is up in {}: its supervisor is process {who}",
                    folder.display()
                );
            }
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("locking {}", path.display()))
            }
        }
    }

    fn sign(&mut self) -> Result<()> {
        self.0.set_len(0)?;
        write!(self.0, "{}", std::process::id()).context("writing the supervisor's number")
    }
}

/// The supervisor of the mesh that is up in a folder, or is being started.
pub(crate) fn running(folder: &Path) -> Option<u32> {
    let path = folder.join(LOCK);
    let file = File::open(&path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => number(&path),
        _ => None,
    }
}

fn number(path: &Path) -> Option<u32> {
    let mut text = String::new();
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
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
