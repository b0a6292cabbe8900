// SPDX-License-Identifier: Apache-2.0
//! A run and its outcome: `run.json`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::load::figures::Figures;
use crate::load::plan::Plan;
use crate::load::verdict::Verdict;
use crate::load::ways::Way;

/// Behind its moments by more than this, k6 is a part of the durations.
const LATE_MS: f64 = 25.0;
/// Of the machine's cores. Beyond it threads wait for a core.
const BUSY: f64 = 0.9;

#[derive(Serialize)]
pub(super) struct Run {
    /// Seconds since 1970.
    pub(super) begun: u64,
    /// As it was typed.
    pub(super) command: String,
    /// The scenario and the fleet, in lines of `name: text`.
    pub(super) header: String,
    pub(super) versions: Vec<(String, String)>,
    pub(super) plan: Plan,
    pub(super) ways: Vec<Tried>,
}

/// A way and its outcome.
#[derive(Serialize)]
pub(super) struct Tried {
    pub(super) way: String,
    pub(super) parameters: String,
    pub(super) figures: Figures,
    pub(super) verdicts: Vec<Verdict>,
    /// Share of the machine's cores' time while it was loaded.
    pub(super) busy: Option<f64>,
}

impl Run {
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let file = folder.join("run.json");
        fs::write(&file, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("writing {}", file.display()))
    }

    /// A threshold is missed by the way.
    pub(super) fn misses(&self, way: Way) -> bool {
        let of = |tried: &&Tried| tried.way == way.name();
        self.ways.iter().filter(of).any(|tried| !tried.met())
    }

    /// The lines below the table.
    pub(super) fn closing(&self) -> String {
        let mut lines = Vec::new();
        for tried in &self.ways {
            lines.push(format!("{}:", tried.way));
            let verdicts = tried.verdicts.iter().map(|verdict| &verdict.line);
            lines.extend(verdicts.map(|line| format!("  {line}")));
            lines.push(format!("  {}", tried.sender()));
        }
        lines.join("\n")
    }
}

impl Tried {
    pub(super) fn met(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.met)
    }

    /// The figures are of the machine rather than of the way.
    pub(super) fn too_busy(&self) -> bool {
        self.figures.dropped > 0
            || self.figures.lag_p99 > LATE_MS
            || self.busy.is_some_and(|busy| busy > BUSY)
    }

    /// The delay of the sender, and the load of the machine.
    pub(super) fn sender(&self) -> String {
        let busy = self
            .busy
            .map(|busy| format!(", the machine's cores {:.0} % busy", 100.0 * busy));
        format!(
            "k6 at most {:.0} ms behind for 99 % ({:.0} ms for all), {} requests dropped{}{}",
            self.figures.lag_p99,
            self.figures.lag_max,
            self.figures.dropped,
            busy.unwrap_or_default(),
            if self.too_busy() {
                ": TOO BUSY, the figures are of the machine"
            } else {
                ""
            },
        )
    }
}

/// In per cent, cut off: 100 % is said of no less than all.
pub(super) fn share(share: f64) -> String {
    match share {
        share if share.is_nan() => "-".to_owned(),
        1.0 => "100 %".to_owned(),
        // 0.999 times 10,000 is a little less than 9,990.
        share => format!("{:.2} %", (1e4 * share + 1e-6).floor() / 1e2),
    }
}
