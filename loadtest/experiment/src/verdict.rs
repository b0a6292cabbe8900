// SPDX-License-Identifier: Apache-2.0
//! A claim, held against the figures of a run.

use std::fmt;

use serde::Serialize;

/// A claim, and whether it holds.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Verdict {
    /// With the figures.
    pub claim: String,
    /// Whether it does.
    pub holds: bool,
    /// A run in which it does not hold has failed.
    pub asserted: bool,
}

impl Verdict {
    /// Whether the run has failed by it.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.asserted && !self.holds
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match (self.holds, self.asserted) {
            (true, _) => "holds",
            (false, true) => "DOES NOT HOLD",
            (false, false) => "does not hold, and is not asserted",
        };
        write!(f, "{word}: {}", self.claim)
    }
}
