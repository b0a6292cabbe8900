// SPDX-License-Identifier: Apache-2.0
//! What a process costs between two moments.

use std::time::{Duration, Instant};

use anyhow::Result;
use weir_stage::usage::Process;

/// Processor time from a moment on.
pub(crate) struct Costs {
    process: Process,
    began: Instant,
    cpu: Duration,
}

impl Costs {
    pub(crate) fn of(process: Process) -> Result<Self> {
        Ok(Self {
            process,
            began: Instant::now(),
            cpu: process.cpu()?,
        })
    }

    /// Those of the same process from now on.
    pub(crate) fn anew(&self) -> Result<Self> {
        Self::of(self.process)
    }

    /// Since then.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        Ok(self.process.cpu()?.saturating_sub(self.cpu))
    }

    /// Cores since then.
    pub(crate) fn cores(&self) -> Result<f64> {
        Ok(self.cpu()?.as_secs_f64() / self.began.elapsed().as_secs_f64())
    }
}
