// SPDX-License-Identifier: Apache-2.0
//! What was with Envoy's own choice, beside what would have been with the filter's.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::screen::{BAD, counted, or_dash, styled, table};

/// The comparison, as `/shadow` says it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Shadow {
    pub cluster: String,
    pub mode: String,
    pub withdrawn: Option<String>,
    /// Receipts of requests that were left to Envoy.
    pub left: u64,
    pub envoy: Side,
    pub forecast: Side,
    pub would_shed: Option<f64>,
    pub would_hold: Option<f64>,
    /// Receipts of requests that were steered.
    pub steered: u64,
    pub live: Side,
    /// A second selection, of requests that went where the first one sent them.
    pub beside: Option<Beside>,
}

/// What a second selection would have chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Beside {
    pub selection: String,
    pub receipts: u64,
    pub elsewhere: Option<f64>,
    pub was: Side,
    pub forecast: Side,
}

/// One side of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Side {
    pub hits: Option<f64>,
    pub mean_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub failed: Option<f64>,
    pub uneven: Option<f64>,
}

/// Of fewer receipts chance says more than the policy.
const ENOUGH: u64 = 200;

impl fmt::Display for Shadow {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(to, "{}: mode {}", self.cluster, self.mode)?;
        if let Some(reason) = &self.withdrawn {
            let words = format!("The policy is withdrawn: {reason}.");
            writeln!(to, "{}", styled(BAD, &words))?;
        }
        writeln!(to)?;
        let mut table = table(&[
            "",
            "RECEIPTS",
            "HITS",
            "MEAN",
            "P99",
            "FAILED",
            "MOST ÷ MEAN",
        ]);
        let mut rows = vec![
            ("Envoy's choice".to_owned(), self.left, &self.envoy),
            (
                "the filter's, forecast".to_owned(),
                self.left,
                &self.forecast,
            ),
            ("the filter's, live".to_owned(), self.steered, &self.live),
        ];
        if let Some(beside) = &self.beside {
            let of = |what: &str| format!("{}: {what}", beside.selection);
            rows.push((of("of these were"), beside.receipts, &beside.was));
            rows.push((of("forecast"), beside.receipts, &beside.forecast));
        }
        for (name, receipts, side) in rows {
            let percent = |share: Option<f64>| or_dash(share.map(percent));
            let ms = |ms: Option<f64>| or_dash(ms.map(|ms| format!("{ms:.1} ms")));
            table.add_row([
                name,
                receipts.to_string(),
                percent(side.hits),
                ms(side.mean_ms),
                ms(side.p99_ms),
                percent(side.failed),
                or_dash(side.uneven.map(|uneven| format!("{uneven:.2}"))),
            ]);
        }
        writeln!(to, "{table}")?;
        if self.left > 0 {
            let share = |share: Option<f64>| percent(share.unwrap_or(0.0));
            let (shed, held) = (share(self.would_shed), share(self.would_hold));
            writeln!(
                to,
                "Of those left to Envoy {shed} would have been shed, and {held} held."
            )?;
        }
        if let Some(Beside {
            selection,
            elsewhere: Some(elsewhere),
            ..
        }) = &self.beside
        {
            let share = percent(*elsewhere);
            writeln!(to, "{selection} would have sent {share} to other hosts.")?;
        }
        if self.left + self.steered < ENOUGH {
            let few = counted((self.left + self.steered) as usize, "receipt");
            writeln!(to, "{few} say little: wait, or lower policy.receipt_every.")?;
        }
        Ok(())
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
