// SPDX-License-Identifier: Apache-2.0
//! Why nothing was found out.

use std::path::PathBuf;

/// Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has ended, or never was.
    #[error("process {0}: there is none of this number")]
    Gone(u32),
    /// A file of the process, of the kernel, or of our own.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What happened.
        error: std::io::Error,
    },
    /// Too little runs.
    #[error(
        "{samples} samples by {sampler}: the program hardly runs; send it the queries that it is there for, or sample longer (--seconds)"
    )]
    Idle {
        /// How many there were.
        samples: u64,
        /// What took them.
        sampler: &'static str,
    },
    /// Without the right to sample other processes.
    #[error("perf_event_open: {0}; be root, or have CAP_PERFMON and the kernel's perf events")]
    Perf(std::io::Error),
    /// A tool of the JDK.
    #[error("{command}: {reason}")]
    Tool {
        /// As it was started.
        command: String,
        /// Its last words, or why it could not be started.
        reason: String,
    },
    /// The agent is there already, for the governor, say.
    #[error(
        "the program's events go to {0} already: the agent observes it; start the program without, or rank by share alone (without --agent)"
    )]
    Observed(String),
    /// The agent does not observe.
    #[error("the agent is not active: its reason is on the program's standard error")]
    Inactive,
    /// The ring of events.
    #[error(transparent)]
    Ring(#[from] weir_events::ReadError),
    /// The kernel's side.
    #[error(transparent)]
    Uprobe(#[from] weir_uprobe::Error),
}

impl Error {
    /// Of what is done to a file.
    pub(crate) fn of(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |error| Error::File { path, error }
    }
}
