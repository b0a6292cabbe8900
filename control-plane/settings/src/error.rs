// SPDX-License-Identifier: Apache-2.0
//! How a setting is refused.

use std::fmt;
use std::path::PathBuf;

/// Why a configuration was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file as named.
    pub file: PathBuf,
    /// From 1; 0 where the file could not be read.
    pub line: u64,
    /// `clusters.rules.policy.overload`; empty where the text is not YAML of the right shape.
    pub field: String,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for Error {}
