// SPDX-License-Identifier: Apache-2.0
use std::error::Error;
use std::path::{Path, PathBuf};

/// A ring's file that cannot be used, by its name.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", file.display())]
pub struct FileError<E: Error + 'static> {
    /// Of the ring.
    pub file: PathBuf,
    /// From the system, or of the header.
    pub source: E,
}

impl<E: Error> FileError<E> {
    pub(crate) fn of(file: &Path) -> impl Fn(E) -> Self {
        move |source| Self {
            file: file.to_owned(),
            source,
        }
    }
}
