// SPDX-License-Identifier: Apache-2.0
//! What was found at one source, in words.

use std::fmt;

/// What was found at one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clause {
    /// The source.
    pub(super) source: &'static str,
    /// What is there.
    pub(super) has: Vec<String>,
    /// What is not there and is missed.
    pub(super) lacks: Vec<&'static str>,
    /// What is not there and need not be.
    pub(super) without: Vec<&'static str>,
    /// Why.
    pub(super) reasons: Vec<String>,
    /// Worth to know, and nothing wrong.
    pub(super) notes: Vec<String>,
}

impl Clause {
    /// Nothing was looked at yet.
    pub(super) fn of(source: &'static str) -> Self {
        Self {
            source,
            ..Self::default()
        }
    }

    /// Nothing came.
    pub(super) fn failed(source: &'static str, reason: &impl fmt::Display) -> Self {
        Self {
            reasons: vec![reason.to_string()],
            ..Self::of(source)
        }
    }

    /// Whether all is there that is missed where it is not.
    pub(super) fn is_good(&self) -> bool {
        self.lacks.is_empty() && self.reasons.is_empty()
    }

    /// Notes a figure. `needed`: it is missed where it is not there.
    pub(super) fn figure(&mut self, name: &'static str, is_there: bool, needed: bool) {
        match (is_there, needed) {
            (true, _) => self.has.push(name.to_owned()),
            (false, true) => self.lacks.push(name),
            (false, false) => self.without.push(name),
        }
    }
}

/// As in `scrape has in_progress; lacks queued; without work (weir_host_queued: not on the page)`.
impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        let lacks = self.lacks.iter().map(|name| (*name).to_owned()).collect();
        let without = self.without.iter().map(|name| (*name).to_owned()).collect();
        let lists: [(&str, Vec<String>); 3] = [
            ("has", self.has.clone()),
            ("lacks", lacks),
            ("without", without),
        ];
        let lists = lists.iter().filter(|(_, names)| !names.is_empty());
        let lists: Vec<String> = lists
            .map(|(verb, names)| format!("{verb} {}", names.join(", ")))
            .collect();
        match (lists.is_empty(), self.reasons.is_empty()) {
            (true, true) => write!(f, " answers")?,
            (true, false) => return write!(f, ": {}", self.reasons.join("; ")),
            (false, _) => write!(f, " {}", lists.join("; "))?,
        }
        let said: Vec<&str> = self
            .reasons
            .iter()
            .chain(&self.notes)
            .map(String::as_str)
            .collect();
        match said.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", said.join("; ")),
        }
    }
}
