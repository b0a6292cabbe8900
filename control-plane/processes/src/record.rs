// SPDX-License-Identifier: Apache-2.0
//! Who was started, in a file, so that the next one can end what a killed process has left.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::Process;
use serde::{Deserialize, Serialize};

/// What the record is usually called.
pub const FILE: &str = "processes.json";

/// A killed process is gone in less; what waits for a disk may take its time.
const GONE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// A process that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// As it was started.
    pub name: String,
    /// Its number.
    pub id: u32,
    /// When it began, in clock ticks since the machine did: its number alone is given again.
    began: u64,
}

impl Entry {
    /// Of a process that lives.
    ///
    /// # Errors
    /// It does not.
    pub fn of(name: &str, id: u32) -> Result<Self> {
        let name = name.to_owned();
        let began = began(id).with_context(|| format!("process {id} ({name}) is gone"))?;
        Ok(Self { name, id, began })
    }

    /// Whether it still lives.
    #[must_use]
    pub fn lives(&self) -> bool {
        began(self.id) == Some(self.began)
    }
}

/// Writes the file: a reader sees all of it or none.
///
/// # Errors
/// The folder is missing or cannot be written.
pub fn write(file: &Path, entries: &[Entry]) -> Result<()> {
    weir_whole_file::write(file, serde_json::to_vec_pretty(entries)?)
        .with_context(|| format!("writing {}", file.display()))
}

/// What is in the file; nobody where there is none.
///
/// # Errors
/// It is not such a file.
pub fn read(file: &Path) -> Result<Vec<Entry>> {
    match fs::read(file) {
        Ok(text) => {
            serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("reading {}", file.display())),
    }
}

/// Kills who is in the file and still lives, waits until they are gone, and removes the file. Tells their
/// names.
///
/// # Errors
/// It is not such a file, or one does not end.
pub fn end(file: &Path) -> Result<Vec<String>> {
    let left: Vec<Entry> = read(file)?.into_iter().filter(Entry::lives).collect();
    for entry in &left {
        match kill(Pid::from_raw(entry.id.try_into()?), Signal::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => bail!("killing {} ({}): {error}", entry.name, entry.id),
        }
    }
    let asked = Instant::now();
    while let Some(entry) = left.iter().find(|entry| entry.lives()) {
        if asked.elapsed() > GONE {
            bail!("{} ({}) does not end", entry.name, entry.id);
        }
        sleep(POLL);
    }
    if file.exists() {
        fs::remove_file(file).with_context(|| format!("removing {}", file.display()))?;
    }
    Ok(left.into_iter().map(|entry| entry.name).collect())
}

/// Whether a process of this number lives. One that has ended and is not waited for does not.
#[must_use]
pub fn lives(id: u32) -> bool {
    began(id).is_some()
}

/// Clock ticks since the machine began. None of one that is gone, or has ended and is not waited for.
fn began(id: u32) -> Option<u64> {
    let stat = Process::new(id.try_into().ok()?).and_then(|process| process.stat());
    let stat = stat.ok()?;
    (!['Z', 'X'].contains(&stat.state)).then_some(stat.starttime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_of_the_same_number_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("processes.json");
        let mut own = Entry::of("own", std::process::id()).unwrap();
        assert!(own.lives());
        own.began -= 1;
        write(&file, &[own.clone()]).unwrap();
        assert_eq!(read(&file).unwrap(), [own]);
        assert_eq!(end(&file).unwrap(), Vec::<String>::new());
        assert!(!file.exists());
        assert_eq!(end(&file).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_file_of_another_kind_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("processes.json");
        fs::write(&file, "{}").unwrap();
        assert!(
            end(&file)
                .unwrap_err()
                .to_string()
                .contains("processes.json")
        );
    }
}
