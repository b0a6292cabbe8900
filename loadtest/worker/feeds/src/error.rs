// SPDX-License-Identifier: Apache-2.0
//! Why a feed could not be had.

/// Why a feed could not be had. Nothing half-read is ever returned beside it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store's URL names nothing that can be opened.
    #[error("item store {url}: {reason}")]
    BadUrl {
        /// As given.
        url: String,
        /// What is wrong with it, and what to write instead.
        reason: String,
    },
    /// The name cannot be that of a project.
    #[error("project {project:?}: {reason}")]
    BadProjectName {
        /// As given, shortened.
        project: String,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// The store answers, and has no such project.
    #[error("project {project}: neither {project}.parquet nor {project}.ndjson is in {store}")]
    UnknownProject {
        /// The project.
        project: String,
        /// The store's URL.
        store: String,
    },
    /// The store gave no usable answer: down, too slow, a server error, or a body cut short.
    #[error("{object}: the item store gave no usable answer: {reason}")]
    Unreachable {
        /// Where the object is.
        object: String,
        /// What happened.
        reason: String,
    },
    /// The store refuses these credentials.
    #[error("{object}: the item store refuses access, check the credentials: {reason}")]
    Denied {
        /// Where the object is.
        object: String,
        /// What the store said.
        reason: String,
    },
    /// The object was replaced or removed since it was found; find it again.
    #[error("{object}: the object changed since it was found; try again")]
    Changed {
        /// Where the object is.
        object: String,
    },
    /// One of [`FeedLimits`](crate::FeedLimits) is passed.
    #[error("{object}: {reason}")]
    TooLarge {
        /// Where the object is.
        object: String,
        /// Which limit, and its value.
        reason: String,
    },
    /// The object is not a feed.
    #[error("{object}{}: {reason}", at_line(*.line))]
    BadFeed {
        /// Where the object is.
        object: String,
        /// The line at fault, counted from 1, for formats that have lines.
        line: Option<u64>,
        /// What is wrong there.
        reason: String,
    },
    /// [`Stop`](weir_rules::Stop) was raised.
    #[error("{object}: nobody waits for it any more")]
    Stopped {
        /// Where the object is.
        object: String,
    },
}

fn at_line(line: Option<u64>) -> String {
    line.map(|line| format!(" line {line}")).unwrap_or_default()
}
