// SPDX-License-Identifier: Apache-2.0
//! Names of jobs and joblets, and the place of a job among others.

/// Names a job within one executor, in order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub(crate) u64);

/// Names a joblet within one executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobletId(pub(crate) u64);

/// Place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub(crate) class: u8,
    pub(crate) job: JobId,
}
