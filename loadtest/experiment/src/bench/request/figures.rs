// SPDX-License-Identifier: Apache-2.0
//! What a slice of one way in one case gave.

use anyhow::Result;
use weir_stage::usage::Process;

use crate::bench::load::Answers;
use crate::bench::request::stage::Sidecar;
use crate::costs::Costs;

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

/// What the processes spend from a moment on.
pub(super) struct Meter {
    sidecar: Costs,
    picker: Option<Costs>,
    control: Costs,
}

impl Meter {
    pub(super) fn start(sidecar: &Sidecar, control: Process) -> Result<Self> {
        Ok(Self {
            sidecar: Costs::of(sidecar.envoy.process)?,
            picker: sidecar.picker.map(Costs::of).transpose()?,
            control: Costs::of(control)?,
        })
    }

    pub(super) fn figures(self, answers: &Answers) -> Result<Figures> {
        let each =
            |costs: &Costs| anyhow::Ok(costs.cpu()?.as_secs_f64() * 1e6 / answers.count as f64);
        Ok(Figures {
            sidecar: each(&self.sidecar)?,
            picker: self.picker.as_ref().map(each).transpose()?,
            control: self.control.cores()? * 1e3,
            p50: answers.quantile(0.5),
            p99: answers.quantile(0.99),
            per_second: answers.per_second(),
        })
    }
}
