// SPDX-License-Identifier: Apache-2.0
//! What was found at a link.

use std::fmt;

use serde::Serialize;

use super::runbook::Runbook;
use crate::screen::{BAD, FAIR, GOOD, styled};

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Fine,
    /// It works, and choices are worse than they could be or a fault would be felt more.
    Poor,
    /// What the filter decides has no effect, or it has nothing to decide by.
    Broken,
}

/// A link, how it is, by what evidence, and what mends it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// One of the names in the README.
    pub link: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// Which Envoy, weir-control or cluster.
    pub at: String,
    /// The evidence, in a sentence.
    pub said: String,
    /// What to do; absent where all is well.
    pub mend: Option<String>,
    /// More on it, where an alert fires by the same fault.
    pub runbook: Option<Runbook>,
}

impl fmt::Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (style, mark) = match self.verdict {
            Verdict::Fine => (GOOD, "ok    "),
            Verdict::Poor => (FAIR, "poor  "),
            Verdict::Broken => (BAD, "BROKEN"),
        };
        let mark = styled(style, mark);
        let (link, at, said) = (self.link, &self.at, &self.said);
        write!(to, "{mark}  {link:<22} {at}: {said}")?;
        if let Some(mend) = &self.mend {
            write!(to, "\n{:<8}{:<22} mend: {mend}", "", "")?;
        }
        if let Some(runbook) = self.runbook {
            write!(to, "\n{:<8}{:<22} runbook: {runbook}", "", "")?;
        }
        Ok(())
    }
}

/// Findings at one link of one place.
pub(crate) struct Look<'a> {
    link: &'static str,
    at: &'a str,
    found: Vec<Finding>,
}

impl<'a> Look<'a> {
    pub(crate) fn at(link: &'static str, at: &'a str) -> Self {
        let found = Vec::new();
        Self { link, at, found }
    }

    pub(crate) fn broken(&mut self, said: impl Into<String>, mend: impl Into<String>) -> &mut Self {
        self.add(Verdict::Broken, said.into(), Some(mend.into()))
    }

    pub(crate) fn poor(&mut self, said: impl Into<String>, mend: impl Into<String>) -> &mut Self {
        self.add(Verdict::Poor, said.into(), Some(mend.into()))
    }

    /// An alert fires by what was found last.
    pub(crate) fn alerts(&mut self, runbook: Runbook) {
        if let Some(finding) = self.found.last_mut() {
            finding.runbook = Some(runbook);
        }
    }

    /// All that was found; where nothing was, that this holds.
    pub(crate) fn or_fine(mut self, said: impl Into<String>) -> Vec<Finding> {
        if self.found.is_empty() {
            self.add(Verdict::Fine, said.into(), None);
        }
        self.found
    }

    fn add(&mut self, verdict: Verdict, said: String, mend: Option<String>) -> &mut Self {
        self.found.push(Finding {
            link: self.link,
            verdict,
            at: self.at.to_owned(),
            said,
            mend,
            runbook: None,
        });
        self
    }
}
