// SPDX-License-Identifier: Apache-2.0
//! A mesh in the background: started and ended by processes that come and go.

mod status;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use weir_stage::command::tail;
use weir_stage::interrupt;
use weir_stage::record;

use crate::description::Description;
use crate::mesh::RECORD;
use crate::plan::Plan;
use crate::programs::Programs;
use crate::supervisor::{self, Held, ORDER, Order};

pub use self::status::{Health, Row, Status, status};

const LOOK: Duration = Duration::from_millis(100);
/// A supervisor that is asked to end kills a dozen processes and removes their namespaces.
const END: Duration = Duration::from_secs(30);
const TAIL_LINES: usize = 15;

/// Says no where a mesh is up in a folder, or is being started.
///
/// # Errors
/// One is, with its supervisor's number.
pub fn refuse_second(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    Held::take(folder).map(drop)
}

/// Starts a mesh whose supervisor is the program `weir-mesh`, and returns when requests go through. `tell` is
/// given each line that the supervisor says.
///
/// # Errors
/// One is up in this folder, or this one could not be started: nothing of it is left then.
pub fn up(
    supervisor: &Path,
    plan: &Plan,
    programs: &Programs,
    folder: &Path,
    mut tell: impl FnMut(&str),
) -> Result<Description> {
    plan.check()?;
    programs.check()?;
    fs::create_dir_all(folder.join("logs"))
        .with_context(|| format!("creating {}", folder.display()))?;
    let held = Held::take(folder)?;
    remove_leftovers(folder, plan.netns, &mut tell)?;
    write_order(folder, plan, programs)?;
    // The supervisor takes the place. If another was quicker, that is what it says.
    drop(held);
    let mut child = start(supervisor, folder)?;
    let log = supervisor::log(folder);
    let mut told = 0;
    loop {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        text[told..whole].lines().for_each(&mut tell);
        told = whole;
        // Its last word before it only watches; the description is there before.
        if text.lines().any(|line| line == supervisor::UP) {
            return Description::read(folder);
        }
        if let Some(status) = child.try_wait()? {
            bail!(
                "the mesh's supervisor ended with {status}; the end of {}:\n{}",
                log.display(),
                tail(&text, TAIL_LINES)
            );
        }
        if let Err(interrupted) = interrupt::check() {
            end(&mut child, folder, plan.netns)?;
            return Err(interrupted);
        }
        sleep(LOOK);
    }
}

fn remove_leftovers(folder: &Path, netns: bool, tell: &mut dyn FnMut(&str)) -> Result<()> {
    let leftovers = supervisor::remove_leftovers(folder, netns)?;
    for name in leftovers.removed {
        tell(&format!("removed what a killed mesh has left: {name}"));
    }
    for name in leftovers.kept {
        tell(&format!(
            "a killed mesh has left what cannot be removed: {name}"
        ));
    }
    Ok(())
}

/// Writes the supervisor's order, where it reads it.
fn write_order(folder: &Path, plan: &Plan, programs: &Programs) -> Result<()> {
    let order = Order {
        plan: plan.clone(),
        programs: programs.clone(),
    };
    let file = folder.join(ORDER);
    fs::write(&file, serde_json::to_vec_pretty(&order)?)
        .with_context(|| format!("writing {}", file.display()))
}

/// Starts the supervisor; it says everything in its log.
fn start(supervisor: &Path, folder: &Path) -> Result<Child> {
    let log = supervisor::log(folder);
    let output = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
    Command::new(supervisor)
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("starting {}", supervisor.display()))
}

/// Ends what was being started.
fn end(child: &mut Child, folder: &Path, netns: bool) -> Result<()> {
    signal(child.id(), Signal::SIGTERM)?;
    let asked = Instant::now();
    while child.try_wait()?.is_none() {
        if asked.elapsed() > END {
            child.kill()?;
        }
        sleep(LOOK);
    }
    let _held = Held::take(folder)?;
    supervisor::remove_leftovers(folder, netns).map(drop)
}

/// The outcome of ending a mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The supervisor that was asked to end, if there was one.
    pub supervisor: Option<u32>,
    /// The processes that it had.
    pub processes: usize,
    /// Things that it had left, or meshes before it, and that are removed now.
    pub removed: Vec<String>,
    /// Things that other meshes have left and that cannot be removed, each with the reason.
    pub kept: Vec<String>,
}

/// Ends the mesh of a folder and verifies that nothing of it is left. Logs and configurations stay.
///
/// # Errors
/// Something is left, and what.
pub fn down(folder: &Path) -> Result<Ended> {
    let entries = record::read(&folder.join(RECORD))?;
    let running = supervisor::running(folder);
    if let Some(supervisor) = &running {
        signal(supervisor.id, Signal::SIGTERM)?;
        let asked = Instant::now();
        while supervisor.lives() {
            if asked.elapsed() > END {
                signal(supervisor.id, Signal::SIGKILL)?;
            }
            sleep(LOOK);
        }
    }
    // Nobody starts one while the last one's leftovers are removed. Without a folder there was none.
    let _held = match folder.exists() {
        true => Some(Held::take(folder)?),
        false => None,
    };
    // Without an order no mesh was up here, with networks or without.
    let netns = Order::read(folder).is_ok_and(|order| order.plan.netns);
    let leftovers = supervisor::remove_leftovers(folder, netns)?;
    let left: Vec<_> = entries.iter().filter(|entry| entry.lives()).collect();
    ensure!(left.is_empty(), "these are left: {left:?}");
    Ok(Ended {
        supervisor: running.map(|entry| entry.id),
        processes: entries.len(),
        removed: leftovers.removed,
        kept: leftovers.kept,
    })
}

fn signal(id: u32, signal: Signal) -> Result<()> {
    match kill(Pid::from_raw(id.try_into()?), signal) {
        // It has just ended by itself.
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => bail!("{signal} to the mesh's supervisor, process {id}: {error}"),
    }
}
