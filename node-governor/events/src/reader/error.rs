// SPDX-License-Identifier: Apache-2.0
//! Why nothing can be read.

use std::io;
use std::path::PathBuf;

use crate::FileError;
use crate::layout::HeaderError;

/// Why nothing could be read, or why the file cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Truncated while it was read, or worse.
    #[error(transparent)]
    File(#[from] FileError<io::Error>),
    /// Not a ring of this version.
    #[error(transparent)]
    Header(#[from] FileError<HeaderError>),
    /// Something is in its place that is not the governor's to use or to replace.
    #[error("{}: {found}; expected {expected}", file.display())]
    Refused {
        /// The file in its place, or the directory it would be in.
        file: PathBuf,
        /// Its kind.
        found: String,
        /// A kind that would do.
        expected: String,
    },
}
