// SPDX-License-Identifier: Apache-2.0
//! Whether the rules and the dashboard of this folder say something of real processes: the tests of this crate.
//!
//! ```text
//!  weir.json ── queries ──┐
//!  Prometheus' rules ─────┼──> the real Prometheus, which reads the real processes ──> data, or a reason why not
//! ```

pub mod dashboard;
pub mod expression;

use std::path::{Path, PathBuf};

/// The folder `deploy`.
#[must_use]
pub fn deploy() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
