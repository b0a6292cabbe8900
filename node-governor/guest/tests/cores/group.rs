// SPDX-License-Identifier: Apache-2.0
//! Cgroups inside, as the kernel's files show them.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use weir_guest::Guest;

/// Where they are mounted.
pub(crate) const MOUNT: &str = "/sys/fs/cgroup";

/// Each takes some tens of milliseconds.
const LOOKS: usize = 100;

/// For the shell: whether a file below the mount says this.
const SAYS: &str =
    "says() { read -r said < $1 || [ -n \"$said\" ] || said=; [ \"$said\" = \"$2\" ]; }";

/// Makes one, with a file of its own for cores.
pub(crate) fn make(guest: &mut Guest, path: &str) -> Result<()> {
    guest.sh(&format!(
        "cd {MOUNT}; mkdir -p {path}; group=.
         for part in $(echo {path} | tr / ' '); do
           echo +cpuset > $group/cgroup.subtree_control; group=$group/$part
         done"
    ))?;
    Ok(())
}

/// Waits until each of these files below the mount says what it shall, all at once.
pub(crate) fn wait_for(guest: &mut Guest, files: &[(&str, &str)]) -> Result<()> {
    let conditions: Vec<String> = files
        .iter()
        .map(|(file, what)| format!("says {MOUNT}/{file} '{what}'"))
        .collect();
    let condition = conditions.join(" && ");
    let waited = guest.wait_until(&format!("{{ {SAYS}; {condition}; }}"));
    waited.map_err(|error| {
        let names: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
        let said = guest.sh(&format!(
            "cd {MOUNT}; grep -s '' {} || true",
            names.join(" ")
        ));
        error.context(format!("they say:\n{}", said.unwrap_or_default()))
    })
}

/// This file below the mount says that now.
pub(crate) fn says(guest: &mut Guest, file: &str, what: &str) -> Result<()> {
    let said = guest.sh(&format!("cat {MOUNT}/{file}"))?;
    ensure!(
        said.trim() == what,
        "{file} says {said:?} and should say {what}"
    );
    Ok(())
}

/// Waits until all of it has stopped.
pub(crate) fn wait_until_frozen(guest: &mut Guest, path: &str) -> Result<()> {
    guest.wait_until(&format!("grep -q 'frozen 1' {MOUNT}/{path}/cgroup.events"))
}

/// CPU time that it has used, in microseconds.
pub(crate) fn used_us(guest: &mut Guest, path: &str) -> Result<u64> {
    let said = guest.sh(&format!(
        "while read -r name value; do [ $name != usage_usec ] || echo $value; done < {MOUNT}/{path}/cpu.stat"
    ))?;
    said.trim()
        .parse()
        .with_context(|| format!("{path} has used `{said}`"))
}

/// Waits until it has used more.
pub(crate) fn wait_for_use(guest: &mut Guest, path: &str) -> Result<()> {
    let used = used_us(guest, path)?;
    guest.wait_until(&format!(
        "{{ read -r _ now < {MOUNT}/{path}/cpu.stat; [ $now -gt {used} ]; }}"
    ))
}

/// Where its threads may run, as each of them says, and the cores that they were on last.
#[derive(Debug, Default, Eq, PartialEq)]
struct Places {
    allowed: BTreeSet<String>,
    cores: BTreeSet<usize>,
}

impl Places {
    fn at(list: &str) -> Self {
        let cores = list.split([',', '-']);
        Self {
            allowed: [list.to_owned()].into(),
            cores: cores.map(|core| core.parse().expect("a core")).collect(),
        }
    }
}

/// Waits until its threads may run on those cores only, two at most, and are seen on each of them. A thread
/// that sleeps is where it was.
pub(crate) fn wait_for_places(guest: &mut Guest, path: &str, list: &str) -> Result<()> {
    let wanted = Places::at(list);
    let mut seen = Places::default();
    for _ in 0..LOOKS {
        seen = places(guest, path)?;
        if seen == wanted {
            return Ok(());
        }
    }
    bail!("{path} is seen at {seen:?}, and wanted at {list}")
}

/// Of all threads of the processes in it.
fn places(guest: &mut Guest, path: &str) -> Result<Places> {
    let said = guest.sh(&format!(
        "for process in $(cat {MOUNT}/{path}/cgroup.procs); do
           for task in /proc/$process/task/*; do
             while read -r name value; do
               [ $name != Cpus_allowed_list: ] || echo allowed $value
             done < $task/status
             read -r stat < $task/stat
             set -- ${{stat##*) }}
             shift 36
             echo core $1
           done
         done"
    ))?;
    let mut places = Places::default();
    for line in said.lines() {
        match line.split_once(' ') {
            Some(("allowed", list)) => drop(places.allowed.insert(list.to_owned())),
            Some(("core", core)) => drop(places.cores.insert(core.parse()?)),
            _ => bail!("`{line}` is of no thread"),
        }
    }
    Ok(places)
}
