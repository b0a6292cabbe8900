// SPDX-License-Identifier: Apache-2.0
//! Walks every link from a caller's Envoy to the hosts, and names the one that is broken.
//!
//! ```text
//!  Envoy's admin pages ──> evidence::Envoy ───┐
//!                                             ├─ links/*: pure ──> Finding: link, evidence, mend
//!  weir-control's pages ─> evidence::Control ─┘
//! ```

mod dump;
pub mod evidence;
pub mod finding;
mod links;
pub mod runbook;
mod stats;

use std::fmt;

use serde::Serialize;

use crate::page::Address;
use crate::screen::{BAD, GOOD, counted, styled};
use evidence::Evidence;
use finding::{Finding, Verdict};

/// What was found, in the order of a request's way.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Diagnosis {
    findings: Vec<Finding>,
    /// What there is to say where no link is broken.
    #[serde(skip)]
    all: &'static str,
}

impl Diagnosis {
    pub(crate) fn new(findings: Vec<Finding>, all: &'static str) -> Self {
        Self { findings, all }
    }

    /// Looks at these weir-controls and Envoys.
    pub async fn of(controls: &[Address], envoys: &[Address]) -> Self {
        Self::from(&Evidence::gather(controls, envoys).await)
    }

    /// What was found.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether a link is broken.
    pub fn is_broken(&self) -> bool {
        self.with(Verdict::Broken).next().is_some()
    }

    fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Finding> {
        let findings = self.findings.iter();
        findings.filter(move |finding| finding.verdict == verdict)
    }
}

impl From<&Evidence> for Diagnosis {
    fn from(evidence: &Evidence) -> Self {
        let findings = links::all(evidence);
        let all = match findings.iter().any(|finding| finding.link == links::CALLER) {
            true => "every link holds",
            false => {
                "every link from weir-control on holds; the callers' half was not looked at, it needs --envoy IP:PORT"
            }
        };
        Self::new(findings, all)
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(to, "{finding}")?;
        }
        let (broken, poor) = (
            self.with(Verdict::Broken).count(),
            self.with(Verdict::Poor).count(),
        );
        let is_or_are = if broken == 1 { "is" } else { "are" };
        writeln!(to)?;
        match (broken, poor) {
            (0, 0) => writeln!(to, "{}", styled(GOOD, self.all)),
            (0, poor) => writeln!(to, "{}; {poor} could be better", self.all),
            (broken, poor) => writeln!(
                to,
                "{}; {poor} could be better",
                styled(
                    BAD,
                    &format!("{} {is_or_are} broken", counted(broken, "link"))
                )
            ),
        }
    }
}
