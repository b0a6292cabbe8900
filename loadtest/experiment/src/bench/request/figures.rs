// SPDX-License-Identifier: Apache-2.0
//! What a slice of one way in one case gave.

use std::time::{Duration, Instant};

use anyhow::Result;
use weir_stage::usage::Process;

use crate::load::Answers;
use crate::request::stage::Sidecar;

#[derive(Debug, Clone, Copy)]
pub(super) struct Figures {
    /// CPU time per request, in microseconds.
    pub(super) sidecar: f64,
    pub(super) picker: Option<f64>,
    /// CPU time of weir-control in a second, in milliseconds: it does nothing per request.
    pub(super) control: f64,
    /// In microseconds.
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) per_second: f64,
}

impl Figures {
    /// Of whoever chooses, wherever that is.
    pub(super) fn cpu(&self) -> f64 {
        self.sidecar + self.picker.unwrap_or(0.0)
    }
}

/// What the processes have spent so far.
pub(super) struct Meter {
    at: Instant,
    sidecar: Duration,
    picker: Option<Duration>,
    control: Duration,
}

impl Meter {
    pub(super) fn read(sidecar: &Sidecar, control: Process) -> Result<Self> {
        Ok(Self {
            at: Instant::now(),
            sidecar: sidecar.envoy.process.cpu()?,
            picker: sidecar.picker.map(Process::cpu).transpose()?,
            control: control.cpu()?,
        })
    }

    pub(super) fn figures(self, after: Self, answers: &Answers) -> Figures {
        let each = |before: Duration, after: Duration| {
            (after - before).as_secs_f64() * 1e6 / answers.count as f64
        };
        let seconds = (after.at - self.at).as_secs_f64();
        Figures {
            sidecar: each(self.sidecar, after.sidecar),
            picker: self.picker.zip(after.picker).map(|(a, b)| each(a, b)),
            control: (after.control - self.control).as_secs_f64() * 1e3 / seconds,
            p50: answers.quantile(0.5),
            p99: answers.quantile(0.99),
            per_second: answers.per_second(),
        }
    }
}
