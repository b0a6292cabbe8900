// SPDX-License-Identifier: Apache-2.0
use std::io;
use std::path::{Path, PathBuf};

/// A file or a folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// Its place.
    pub path: PathBuf,
    /// From the system.
    pub source: io::Error,
}

impl FileError {
    pub(crate) fn of(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self {
            path: path.to_owned(),
            source,
        }
    }
}
