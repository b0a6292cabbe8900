// SPDX-License-Identifier: Apache-2.0
//! Why Weir chose as it did, by its own count.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use weir_stage::http;

/// The reason that all requests here must have: the host said that it has the key.
const WANTED: &str = "known_cached";

/// Decisions so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reasons {
    wanted: u64,
    others: u64,
}

impl Reasons {
    pub(super) fn read(admin: SocketAddr) -> Result<Self> {
        let page = http::get(admin, "/stats/prometheus?filter=weir_decisions")?;
        Self::parse(&page.body).context("the sidecar's weir_decisions_total")
    }

    fn parse(page: &str) -> Option<Self> {
        let (mut wanted, mut others) = (0, 0);
        for line in page.lines() {
            let Some(sample) = line.strip_prefix("weir_decisions_total{") else {
                continue;
            };
            let (labels, count) = sample.rsplit_once(' ')?;
            let count: u64 = count.parse().ok()?;
            match labels.contains(&format!("reason=\"{WANTED}\"")) {
                true => wanted += count,
                false => others += count,
            }
        }
        Some(Self { wanted, others })
    }

    /// Fails unless the filter decided all of `requests` since `before`, for the one reason.
    pub(super) fn check(self, before: Self, requests: u64) -> Result<()> {
        let (wanted, others) = (self.wanted - before.wanted, self.others - before.others);
        ensure!(
            others == 0 && wanted >= requests,
            "of {requests} requests the filter decided {wanted} because of `{WANTED}` and {others} for \
             other reasons"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_for_another_reason_is_noticed_and_one_that_was_not_taken() {
        let page = "# TYPE weir_decisions_total counter\n\
            weir_decisions_total{reason=\"known_cached\"} 12\n\
            weir_decisions_total{reason=\"no_table\"} 3\n";
        let reasons = Reasons::parse(page).unwrap();
        let before = Reasons {
            wanted: 2,
            others: 3,
        };
        assert!(reasons.check(before, 10).is_ok());
        let error = reasons.check(before, 11).unwrap_err().to_string();
        assert!(error.contains("of 11 requests"), "{error}");
        let before = Reasons {
            wanted: 2,
            others: 2,
        };
        assert!(reasons.check(before, 10).is_err());
    }
}
