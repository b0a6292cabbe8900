// SPDX-License-Identifier: Apache-2.0
//! What is kept of a run beside its requests: enough to tell of it again.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The file in the run's folder.
const FILE: &str = "run.json";

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

/// One run of the command.
#[derive(Serialize, Deserialize)]
pub(super) struct Run {
    /// Seconds since 1970.
    pub(super) begun: u64,
    /// What was typed.
    pub(super) command: String,
    /// The hosts slept instead of working.
    pub(super) emulated: bool,
    /// The head of the table.
    pub(super) header: String,
    /// Programs and their versions.
    pub(super) versions: Vec<(String, String)>,
    /// Seconds of sending for each way.
    pub(super) seconds: f64,
    /// Seconds until a caller gives up.
    pub(super) deadline: f64,
    /// Of each host.
    pub(super) cores: usize,
    /// In the order in which they were run.
    pub(super) ways: Vec<Way>,
}

/// One way of a run.
#[derive(Serialize, Deserialize)]
pub(super) struct Way {
    pub(super) name: String,
    /// Its folder in the run's.
    pub(super) folder: String,
    /// weir-control's overload policy; none without weir-control.
    pub(super) overload: Option<String>,
    /// In the order of the samples.
    pub(super) hosts: Vec<SocketAddr>,
    /// Share of the machine's cores' time while it was sent.
    pub(super) busy: Option<f64>,
    /// How far the replayer was behind, in milliseconds: 99th percentile.
    pub(super) lag: f64,
}

impl Run {
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let file = folder.join(FILE);
        fs::write(&file, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("writing {}", file.display()))
    }

    /// serde_json names line and column of what it does not understand.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(FILE);
        let text = fs::read(&file)
            .with_context(|| format!("reading {}: is this a run's folder?", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))
    }

    /// When it began.
    pub(super) fn date(&self) -> String {
        date(self.begun)
    }
}

/// Seconds since 1970 as `21 November 2026, 12:05 UTC`.
pub(crate) fn date(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let minutes = seconds % 86_400 / 60;
    let (hour, minute) = (minutes / 60, minutes % 60);
    let month = MONTHS[month as usize - 1];
    format!("{day} {month} {year}, {hour:02}:{minute:02} UTC")
}

/// Now, for [`Run::begun`].
pub(crate) fn now() -> Result<u64> {
    Ok(UNIX_EPOCH.elapsed()?.as_secs())
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
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_778), (2026, 11, 21));
    }

    #[test]
    fn a_folder_without_a_run_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Run::read(folder.path()).err().unwrap();
        assert!(format!("{error:#}").contains("run.json"));
        fs::write(folder.path().join(FILE), "{\n\"begun\": soon}").unwrap();
        let error = format!("{:#}", Run::read(folder.path()).err().unwrap());
        assert!(error.contains("line 2 column"), "{error}");
    }
}
