// SPDX-License-Identifier: Apache-2.0
//! The origin of figures: when they were measured, by which command, and on what.

use std::time::UNIX_EPOCH;

use anyhow::Result;
use serde::{Deserialize, Serialize};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Where a run's figures are from.
#[derive(Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Seconds since 1970.
    begun: u64,
    /// The command that makes the run again.
    pub(crate) command: String,
    /// The head of the table, in lines of `name: text`.
    pub(crate) header: String,
    /// Programs and their versions.
    versions: Vec<(String, String)>,
}

impl Origin {
    /// Of a run that begins now.
    pub(crate) fn now(
        command: String,
        header: String,
        versions: Vec<(String, String)>,
    ) -> Result<Self> {
        Ok(Self {
            begun: UNIX_EPOCH.elapsed()?.as_secs(),
            command,
            header,
            versions,
        })
    }

    /// When it began: `21 November 2026, 12:05 UTC`.
    pub(crate) fn date(&self) -> String {
        let (year, month, day) = civil(self.begun / 86_400);
        let minutes = self.begun % 86_400 / 60;
        let (hour, minute) = (minutes / 60, minutes % 60);
        let month = MONTHS[month as usize - 1];
        format!("{day} {month} {year}, {hour:02}:{minute:02} UTC")
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

/// The day of the Gregorian calendar that is so many days after the first of 1970 (H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin with March here, so that leap days are their last.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
impl Origin {
    /// Of a run that somebody made up.
    pub(crate) fn made_up(command: &str, header: &str) -> Self {
        Self {
            begun: 1_795_263_585,
            command: command.to_owned(),
            header: header.to_owned(),
            versions: vec![("Envoy".to_owned(), "1.40.0".to_owned())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_778), (2026, 11, 21));
    }
}
