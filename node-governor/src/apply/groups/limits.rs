// SPDX-License-Identifier: Apache-2.0
//! What a cgroup of version 2 may have beside cores. Documentation/admin-guide/cgroup-v2.rst says what the files mean.
//!
//! ```text
//!  memory   memory.high                the kernel takes back what is above it, and slows who asks for more
//!  disk     io.weight, io.bfq.weight   by iocost where a disk has it on (io.cost.qos), by BFQ where it is the scheduler
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::cpuset::enable;
use super::folder::Folder;
use crate::cores::{Limit, Limits};

/// A file, by its limit, with what the kernel has there before anybody writes.
const FILES: [(Limit, &str, &str); 3] = [
    (Limit::Memory, "memory.high", "max"),
    (Limit::Disk, "io.weight", "default 100"),
    (Limit::Disk, "io.bfq.weight", "default 100"),
];

impl Limit {
    /// Its controller.
    pub(crate) fn controller(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "io",
        }
    }
}

/// Files of these limits by name, as the kernel has them in a new cgroup.
pub(crate) fn new(limits: &[Limit]) -> BTreeMap<String, String> {
    let files = FILES.iter().filter(|(limit, ..)| limits.contains(limit));
    files
        .map(|(_, file, text)| ((*file).to_owned(), (*text).to_owned()))
        .collect()
}

/// Files of these limits as they are; where a controller is not enabled, as they will be when it is.
pub(super) fn found(folder: &Folder, limits: &[Limit]) -> io::Result<BTreeMap<String, String>> {
    let mut found = new(limits);
    for (file, text) in &mut found {
        if folder.has(file) {
            *text = folder.line(file)?;
        }
    }
    Ok(found)
}

/// Writes what is a matter of the plan.
pub(super) fn set(root: &Path, folder: &Folder, limits: Limits) -> io::Result<()> {
    let disk = limits.disk.map(|weight| format!("default {weight}"));
    let memory = limits.memory.map(|bytes| bytes.to_string());
    for (limit, text) in [(Limit::Memory, memory), (Limit::Disk, disk)] {
        let Some(text) = text else { continue };
        let files = || FILES.iter().filter(|(of, ..)| *of == limit);
        let there = || files().filter(|(_, file, _)| folder.has(file));
        if there().next().is_none() {
            enable(root, folder.path(), limit.controller())?;
        }
        let mut any = false;
        for (_, file, _) in there() {
            folder.put(file, &text)?;
            any = true;
        }
        if !any {
            let names: Vec<&str> = files().map(|(_, file, _)| *file).collect();
            let reason = format!("the kernel has no {}", names.join(" and no "));
            return Err(super::named(folder.path(), io::Error::other(reason)));
        }
    }
    Ok(())
}

/// Writes what was found, where it is not there already; other files than these are not written.
pub(super) fn restore(folder: &Folder, found: &BTreeMap<String, String>) -> io::Result<()> {
    for (_, file, _) in &FILES {
        let Some(text) = found.get(*file) else {
            continue;
        };
        if folder.has(file) && folder.line(file)? != *text {
            folder.put(file, text)?;
        }
    }
    Ok(())
}
