// SPDX-License-Identifier: Apache-2.0
use std::path::PathBuf;

use crate::bench::programs::Programs;

/// What all parts are measured with.
pub(crate) struct Setting {
    pub(crate) programs: Programs,
    /// For logs and configurations.
    pub(crate) folder: PathBuf,
    /// Fewer and shorter rounds.
    pub(crate) quick: bool,
    /// Shares of saturation, of `inference-loads`.
    pub(crate) loads: Vec<f64>,
}
