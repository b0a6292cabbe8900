// SPDX-License-Identifier: Apache-2.0
//! Lines of a module.

use crate::abi::LogLevel;

/// A line that a module logged or printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The level; printing counts as info, printing to standard error as error.
    pub level: LogLevel,
    /// The text.
    pub message: String,
}
