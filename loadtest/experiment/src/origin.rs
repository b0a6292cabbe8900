// SPDX-License-Identifier: Apache-2.0
//! The origin of figures: when they were measured, by which command, and on what.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Where a run's figures are from.
#[derive(Serialize, Deserialize)]
pub(crate) struct Origin {
    #[serde(with = "jiff::fmt::serde::timestamp::second::required")]
    begun: Timestamp,
    /// The command that makes the run again.
    pub(crate) command: String,
    /// The head of the table, in lines of `name: text`.
    pub(crate) header: String,
    /// Programs and their versions.
    versions: Vec<(String, String)>,
}

impl Origin {
    /// Of a run that begins now.
    pub(crate) fn now(command: String, header: String, versions: Vec<(String, String)>) -> Self {
        Self {
            begun: Timestamp::now(),
            command,
            header,
            versions,
        }
    }

    /// When it began: `21 November 2026, 12:05 UTC`.
    pub(crate) fn date(&self) -> String {
        self.begun.strftime("%-d %B %Y, %H:%M UTC").to_string()
    }

    /// The lines of the header and the versions, by name.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let lines = self.header.lines().map(|line| {
            let (name, text) = line.split_once(':').unwrap_or(("", line));
            (name.trim().to_owned(), text.trim().to_owned())
        });
        lines.chain(self.versions.iter().cloned()).collect()
    }
}

#[cfg(test)]
impl Origin {
    /// Of a run that somebody made up.
    pub(crate) fn made_up(command: &str, header: &str) -> Self {
        Self {
            begun: Timestamp::constant(1_795_263_585, 0),
            command: command.to_owned(),
            header: header.to_owned(),
            versions: vec![("Envoy".to_owned(), "1.40.0".to_owned())],
        }
    }
}
