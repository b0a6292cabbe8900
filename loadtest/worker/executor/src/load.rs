// SPDX-License-Identifier: Apache-2.0
//! How busy a host is.

use std::time::Duration;

use crate::Kind;

/// Number of priority classes; 0 is the most important.
pub const CLASSES: usize = 32;

/// A picture of the load, as the host publishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Jobs accepted and not ended, and joblets that run although nobody wants them any more.
    pub in_progress: u32,
    /// Cores that are busy.
    pub busy_cores: u32,
    /// Jobs whose next joblet waits for a core, by class.
    pub queued: [u32; CLASSES],
    /// Joblets that could run and wait for a core, by [`Kind`] (document 001's stalled promises).
    pub stalled: [u32; Kind::COUNT],
    /// Core time that jobs whose next joblet waits for a core are expected to need, by class: what jobs of
    /// their keys have needed lately, less what they have had.
    pub work: [Duration; CLASSES],
    /// Mean wait of the jobs whose last joblet began in the last second; if none did while jobs
    /// wait, the longest of their waits so far.
    pub queuing_delay: Option<Duration>,
}
