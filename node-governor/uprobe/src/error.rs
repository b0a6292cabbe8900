// SPDX-License-Identifier: Apache-2.0
//! Why functions cannot be watched, and what to do about it: one line each.

use std::io;
use std::path::PathBuf;

/// What is shown of a reason, in characters.
const LONGEST: usize = 400;

/// Why functions cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process may not load eBPF programs.
    #[error("{call}: not permitted: run as root, or with CAP_SYS_ADMIN")]
    Permission {
        /// What was refused.
        call: &'static str,
    },
    /// The kernel is too old.
    #[error("the kernel is {found}: 5.15 or newer is needed")]
    Kernel {
        /// What runs here.
        found: String,
    },
    /// The kernel was built without something.
    #[error("the kernel has no {missing}: it must be built with {option}")]
    Missing {
        /// The file that is not there.
        missing: &'static str,
        /// What brings it.
        option: &'static str,
    },
    /// The kernel names threads otherwise than this process does.
    #[error(
        "this process is in a container's namespace of process ids: run it in the host's (hostPID: true)"
    )]
    Namespace,
    /// The kernel refused something else.
    #[error("{call}: {reason}")]
    Refused {
        /// What was refused.
        call: &'static str,
        /// What it said.
        reason: String,
    },
    /// A file cannot be read as a program.
    #[error("{}: {reason}", binary.display())]
    Binary {
        /// The file.
        binary: PathBuf,
        /// Why not.
        reason: String,
    },
    /// There is no such function in the file, or more than one.
    #[error("{}: function `{symbol}`: {reason}", binary.display())]
    Symbol {
        /// The file.
        binary: PathBuf,
        /// What was looked for.
        symbol: String,
        /// Why it was not found.
        reason: String,
    },
    /// The lanes cannot be read.
    #[error("mapping the lanes: {0}")]
    Map(#[source] io::Error),
}

impl Error {
    /// Of something that the kernel refused.
    pub(crate) fn refused(call: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut reason = error.to_string();
        let mut cause = Some(error);
        while let Some(now) = cause {
            let kind = now.downcast_ref::<io::Error>().map(io::Error::kind);
            if kind == Some(io::ErrorKind::PermissionDenied) {
                return Self::Permission { call };
            }
            cause = now.source();
            if let Some(cause) = cause {
                reason = format!("{reason}: {cause}");
            }
        }
        let one_line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        // What the kernel's check of a program writes has thousands of lines: the reason is near the end.
        let skip = one_line.chars().count().saturating_sub(LONGEST);
        Self::Refused {
            call,
            reason: one_line.chars().skip(skip).collect(),
        }
    }
}
