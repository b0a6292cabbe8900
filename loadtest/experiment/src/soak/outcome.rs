// SPDX-License-Identifier: Apache-2.0
//! What came of a soak.

use std::fmt;

use serde::Serialize;

use crate::soak::churn::Done;
use crate::soak::load::Sent;
use crate::soak::plan::Plan;
use crate::soak::samples::{Sample, What};
use crate::soak::verdict::{self, Verdict};

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// What became of requests.
    pub sent: Sent,
    /// What came and went.
    pub done: Done,
    /// What had to hold.
    pub verdicts: Vec<Verdict>,
    #[serde(skip)]
    pub(crate) samples: Vec<(f64, Sample)>,
    #[serde(skip)]
    pub(crate) plan: Plan,
    /// Of the cores' time, by everybody on the machine.
    pub(crate) busy: Option<f64>,
}

impl Outcome {
    /// Whether everything holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.holds)
    }

    /// One figure of somebody over time.
    pub(crate) fn series(&self, who: &str, what: What) -> Vec<(f64, f64)> {
        verdict::series(&self.samples, who, what)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.sent)?;
        writeln!(f, "{:?}", self.done)?;
        for verdict in &self.verdicts {
            let word = if verdict.holds { "holds" } else { "FAILS" };
            writeln!(f, "{word}  {}: {}", verdict.what, verdict.seen)?;
        }
        if !self.plan.judged {
            writeln!(f, "too short to judge whether anything grows")?;
        }
        Ok(())
    }
}
