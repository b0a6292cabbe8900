// SPDX-License-Identifier: Apache-2.0
//! How a setting is refused.

use std::fmt::{self, Write};
use std::path::PathBuf;

/// Characters of a field and of a reason that are shown.
const LONGEST_FIELD: usize = 200;
const LONGEST_REASON: usize = 600;

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
            f.write_str(": ")?;
            line(&self.field, LONGEST_FIELD, f)?;
        }
        f.write_str(": ")?;
        line(&self.reason, LONGEST_REASON, f)
    }
}

/// Writes a text as part of one line, not for ever: names and values in it are what somebody has written.
fn line(text: &str, longest: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = text.chars();
    for c in rest.by_ref().take(longest) {
        match c.is_control() {
            true => write!(f, "{}", c.escape_default())?,
            false => f.write_char(c)?,
        }
    }
    match rest.next() {
        Some(_) => f.write_str("…"),
        None => Ok(()),
    }
}

impl std::error::Error for Error {}
