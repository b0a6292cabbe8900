// SPDX-License-Identifier: Apache-2.0
//! Why a producer writes nothing.

use std::io;
use std::path::PathBuf;

use crate::FileError;
use crate::layout::HeaderError;

/// Why a producer writes nothing for now: the program goes on, and it is tried again at most once a second.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Missing, not ours to write, not mapped.
    #[error(transparent)]
    File(#[from] FileError<io::Error>),
    /// Not a ring of this version.
    #[error(transparent)]
    Header(#[from] FileError<HeaderError>),
    /// The governor has replaced the file, and the new one is not there yet.
    #[error("{}: retired by the governor", file.display())]
    Retired {
        /// Of the ring.
        file: PathBuf,
    },
    /// More threads than lanes.
    #[error("{}: all {lanes} lanes are taken", file.display())]
    Full {
        /// Of the ring.
        file: PathBuf,
        /// How many it has.
        lanes: u32,
    },
}
