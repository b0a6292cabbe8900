// SPDX-License-Identifier: Apache-2.0
//! Jobs that have ended may be started again.

use std::io::ErrorKind;
use std::path::Path;

use super::record::{Folder, JOBS};
use crate::FileError;
use crate::state::only_ours;

/// Why nothing was forgotten.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a folder of the jobs cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// It has no record.
    #[error("{name}: no such job has ended; {there}")]
    Unknown {
        /// As it was asked for.
        name: String,
        /// Those that there are.
        there: String,
    },
    /// It has not ended.
    #[error("{name}: runs still, or nobody has seen its end yet; weir-governor run finds out")]
    Runs {
        /// As it was asked for.
        name: String,
    },
}

/// Removes the records of these jobs, or of all that have ended where none is named; which it were. One that cannot
/// be forgotten is an error, and then none is. A governor that is running learns of it at its next start, and then
/// starts them again.
pub fn forget(state: &Path, names: &[String]) -> Result<Vec<String>, Error> {
    let jobs = state.join(JOBS);
    only_ours(state).map_err(FileError::of(state))?;
    let mut there = Vec::new();
    match std::fs::read_dir(&jobs) {
        Ok(entries) => {
            for entry in entries {
                let path = entry.map_err(FileError::of(&jobs))?.path();
                let name = path.file_name().unwrap_or_default();
                let name = name.to_string_lossy().into_owned();
                there.push((name, Folder::open(&path).map_err(FileError::of(&path))?));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(FileError::of(&jobs)(error).into()),
    }
    there.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut ended = Vec::new();
    for (name, folder) in &there {
        let path = folder.path();
        let held = folder.hold().map_err(FileError::of(path))?;
        let has_ended = std::fs::exists(path.join("ended")).map_err(FileError::of(path))?;
        let has_started = std::fs::exists(path.join("started")).map_err(FileError::of(path))?;
        match held {
            Some(held) if has_ended => ended.push((name, held)),
            // There is nothing to forget.
            Some(_) if !has_started => {}
            _ if names.contains(name) => return Err(Error::Runs { name: name.clone() }),
            _ => {}
        }
    }
    if let Some(name) = names
        .iter()
        .find(|name| !ended.iter().any(|(n, _)| n == name))
    {
        let ended: Vec<&str> = ended.iter().map(|(name, _)| name.as_str()).collect();
        return Err(Error::Unknown {
            name: name.clone(),
            there: match ended.as_slice() {
                [] => "none has".to_owned(),
                names => format!("{} have", names.join(", ")),
            },
        });
    }
    ended.retain(|(name, _)| names.is_empty() || names.contains(name));
    for (name, held) in &ended {
        held.forget().map_err(FileError::of(&jobs.join(name)))?;
    }
    Ok(ended.into_iter().map(|(name, _)| name.clone()).collect())
}
