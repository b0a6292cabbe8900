// SPDX-License-Identifier: Apache-2.0
//! Where the programs are.

use std::path::PathBuf;

use weir_needs::provided_or_skip;

pub(crate) struct Programs {
    pub(crate) prometheus: PathBuf,
    pub(crate) envoy: PathBuf,
    pub(crate) filter: PathBuf,
    /// Weir's own.
    pub(crate) bin: PathBuf,
}

impl Programs {
    /// None, and the test skipped, where one of them is not there.
    pub(crate) fn find() -> Option<Self> {
        Some(Self {
            prometheus: provided_or_skip("WEIR_PROMETHEUS")?,
            envoy: provided_or_skip("WEIR_ENVOY")?,
            filter: provided_or_skip("WEIR_FILTER_WASM")?,
            bin: provided_or_skip("WEIR_BIN_DIR")?,
        })
    }
}
