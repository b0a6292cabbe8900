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
use crate::screen::{BAD, FAIR, GOOD, counted, styled};
use evidence::Evidence;
use finding::{Finding, Verdict};

/// What was found, in the order of a request's way.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Diagnosis(Vec<Finding>);

impl Diagnosis {
    /// Looks at these weir-controls and Envoys.
    pub async fn of(controls: &[Address], envoys: &[Address]) -> Self {
        Self::from(&Evidence::gather(controls, envoys).await)
    }

    /// What was found.
    pub fn findings(&self) -> &[Finding] {
        &self.0
    }

    /// Whether a link is broken.
    pub fn is_broken(&self) -> bool {
        self.with(Verdict::Broken).next().is_some()
    }

    /// What there is to say where no link is broken.
    fn all(&self) -> &'static str {
        match self.0.iter().any(|finding| finding.link == links::CALLER) {
            true => "every link holds",
            false => {
                "every link from weir-control on holds; the callers' half was not looked at, it needs --envoy IP:PORT"
            }
        }
    }

    fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Finding> {
        let findings = self.0.iter();
        findings.filter(move |finding| finding.verdict == verdict)
    }
}

impl From<&Evidence> for Diagnosis {
    fn from(evidence: &Evidence) -> Self {
        Self(links::all(evidence))
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.0 {
            let (style, mark) = match finding.verdict {
                Verdict::Fine => (GOOD, "ok    "),
                Verdict::Poor => (FAIR, "poor  "),
                Verdict::Broken => (BAD, "BROKEN"),
            };
            let mark = styled(style, mark);
            let (link, at, said) = (finding.link, &finding.at, &finding.said);
            writeln!(to, "{mark}  {link:<22} {at}: {said}")?;
            if let Some(mend) = &finding.mend {
                writeln!(to, "{:<8}{:<22} mend: {mend}", "", "")?;
            }
            if let Some(runbook) = finding.runbook {
                writeln!(to, "{:<8}{:<22} runbook: {runbook}", "", "")?;
            }
        }
        let (broken, poor) = (
            self.with(Verdict::Broken).count(),
            self.with(Verdict::Poor).count(),
        );
        let is_or_are = if broken == 1 { "is" } else { "are" };
        writeln!(to)?;
        match (broken, poor) {
            (0, 0) => writeln!(to, "{}", styled(GOOD, self.all())),
            (0, poor) => writeln!(to, "{}; {poor} could be better", self.all()),
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
