// SPDX-License-Identifier: Apache-2.0
//! Sizes that suit the machine, found at the start of a run.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::colocation::calibration::{Alone, slo};
use crate::colocation::programs::Programs;
use crate::static_plan::jobs;
use crate::static_plan::plan::Plan;
use crate::static_plan::rounds::NAME;

/// Of what memcached carries on all cores: 30K of 120K requests a second in document 004.
const STEADY: f64 = 0.25;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Requests of 100 keys a second that memcached carries on all cores, with the client on them.
    pub all_cores: f64,
    /// The p95 of memcached alone at the steady load: of half of the intervals it is no more.
    pub alone_p95_us: u64,
    /// The limit of an interval's p95 that follows from it, as in `colocation`.
    pub slo_us: u64,
    /// Of the jobs, in the order of [`jobs::STAND_INS`].
    pub sizes: [u64; 6],
}

impl Calibration {
    /// Measures. Logs go to `folder`.
    ///
    /// # Errors
    /// A program fails, or memcached answers too little to tell anything.
    pub fn measure(programs: &Programs, plan: &Plan, folder: &Path, seed: u64) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let steady = |all_cores| (STEADY * all_cores, STEADY * all_cores);
        let alone = Alone::measure(NAME, programs, plan.calibrate, steady, folder, seed)?;
        Ok(Self {
            all_cores: alone.all_cores,
            alone_p95_us: alone.p95_us,
            slo_us: slo(alone.p95_us),
            sizes: jobs::sizes(programs, plan.scale, &folder.join("work"), seed)?,
        })
    }

    /// Requests a second that are asked for.
    #[must_use]
    pub fn rate(&self) -> f64 {
        STEADY * self.all_cores
    }
}
