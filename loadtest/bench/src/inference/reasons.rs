// SPDX-License-Identifier: Apache-2.0
//! Why Weir chose as it did, by its own count.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use weir_stage::http;

/// The reason while nothing is known of hosts.
const NO_TABLE: &str = "no_table";

/// Choices, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reasons(BTreeMap<String, u64>);

impl Reasons {
    /// From the sidecar's admin pages; of a sidecar without the filter there are none.
    pub(super) fn read(admin: SocketAddr) -> Result<Self> {
        let page = http::get(admin, "/stats/prometheus?filter=weir_decisions")?;
        Self::parse(&page.body).context("the sidecar's weir_decisions_total")
    }

    fn parse(page: &str) -> Option<Self> {
        let samples = page
            .lines()
            .filter_map(|line| line.strip_prefix("weir_decisions_total{"));
        let parse = |sample: &str| {
            let (labels, count) = sample.rsplit_once(' ')?;
            let (_, reason) = labels.split_once("reason=\"")?;
            let (reason, _) = reason.split_once('"')?;
            Some((reason.to_owned(), count.parse().ok()?))
        };
        samples.map(parse).collect::<Option<_>>().map(Self)
    }

    /// Whether a choice was made from a table.
    pub(super) fn with_table(&self) -> bool {
        let mut others = self.0.iter().filter(|(reason, _)| *reason != NO_TABLE);
        others.any(|(_, count)| *count > 0)
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        let earlier = |reason: &str| before.0.get(reason).copied().unwrap_or(0);
        let new = |(reason, count): (&String, &u64)| {
            let count = count.saturating_sub(earlier(reason));
            (count > 0).then(|| (reason.clone(), count))
        };
        Self(self.0.iter().filter_map(new).collect())
    }

    pub(super) fn add(&mut self, more: &Self) {
        for (reason, count) in &more.0 {
            *self.0.entry(reason.clone()).or_default() += count;
        }
    }

    pub(super) fn told(&self) -> String {
        let told = self
            .0
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"));
        told.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(no_table: u64, cached: u64) -> Reasons {
        let page = format!(
            "# TYPE weir_decisions_total counter\n\
             weir_decisions_total{{reason=\"no_table\"}} {no_table}\n\
             weir_decisions_total{{reason=\"known_cached\"}} {cached}\n"
        );
        Reasons::parse(&page).unwrap()
    }

    #[test]
    fn choices_without_a_table_are_told_from_others() {
        assert!(!page(3, 0).with_table());
        assert!(page(3, 1).with_table());
        assert!(!Reasons::parse("").unwrap().with_table());
    }

    #[test]
    fn only_what_came_since_counts() {
        let mut all = page(3, 7).since(&page(3, 2));
        assert_eq!(all.told(), "known_cached 5");
        all.add(&page(1, 1));
        assert_eq!(all.told(), "known_cached 6, no_table 1");
    }

    #[test]
    fn what_cannot_be_read_is_no_count() {
        assert_eq!(
            Reasons::parse("weir_decisions_total{reason=\"x\"} many"),
            None
        );
    }
}
