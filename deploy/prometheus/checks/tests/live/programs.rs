// SPDX-License-Identifier: Apache-2.0
//! Where the programs are.

use std::path::PathBuf;

pub(crate) struct Programs {
    pub(crate) prometheus: PathBuf,
    pub(crate) envoy: PathBuf,
    pub(crate) filter: PathBuf,
    /// Weir's own.
    pub(crate) bin: PathBuf,
}

impl Programs {
    /// None where one of them is not named, which is said.
    pub(crate) fn find() -> Option<Self> {
        let place = |variable: &str| {
            let place = std::env::var_os(variable).map(PathBuf::from);
            if place.is_none() {
                eprintln!(
                    "SKIPPED: {variable} is not set, so no query meets real processes: `cargo xtask test` sets it"
                );
            }
            place
        };
        Some(Self {
            prometheus: place("WEIR_PROMETHEUS")?,
            envoy: place("WEIR_ENVOY")?,
            filter: place("WEIR_FILTER_WASM")?,
            bin: place("WEIR_BIN_DIR")?,
        })
    }
}
