// SPDX-License-Identifier: Apache-2.0
//! A way and its outcome.

use serde::Serialize;

use crate::load::figures::Figures;
use crate::load::verdict;
use crate::sampler::Sample;
use crate::verdict::Verdict;

/// Behind its moments by more than this, k6 is a part of the durations.
const LATE_MS: f64 = 25.0;
/// Of the machine's cores. Beyond it threads wait for a core.
const BUSY: f64 = 0.9;

/// A way and its outcome: a line of `rounds.jsonl`.
#[derive(Serialize)]
pub struct Tried {
    pub(super) way: String,
    pub(super) parameters: String,
    pub(super) figures: Figures,
    pub(super) verdicts: Vec<Verdict>,
    /// Share of the machine's cores' time while it was loaded.
    pub(super) busy: Option<f64>,
    /// Looks at the hosts meanwhile; in a file of their own.
    #[serde(skip)]
    pub(super) samples: Vec<Sample>,
}

impl Tried {
    /// The figures are of the machine rather than of the way.
    pub(super) fn too_busy(&self) -> bool {
        self.figures.dropped > 0
            || self.figures.lag_p99 > LATE_MS
            || self.busy.is_some_and(|busy| busy > BUSY)
    }

    /// Its lines below the table.
    pub(super) fn closing(&self) -> String {
        let lines = self.lines().into_iter().map(|line| format!("  {line}\n"));
        format!("{}:\n{}", self.way, lines.collect::<String>())
    }

    /// Objectives, met or missed, and the sender.
    pub(super) fn lines(&self) -> Vec<String> {
        let verdicts = self.verdicts.iter().map(verdict::line);
        verdicts.chain([self.sender()]).collect()
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
