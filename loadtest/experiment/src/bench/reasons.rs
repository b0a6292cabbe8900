// SPDX-License-Identifier: Apache-2.0
//! Why Weir chose as it did, by its own count.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use weir_policy::Reason;
use weir_report::digits;
use weir_stage::http;

/// The dynamic module tells its counts on its ticks, of 50 ms.
const TOLD: Duration = Duration::from_millis(200);

/// Choices, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reasons(BTreeMap<String, u64>);

impl Reasons {
    /// From the sidecar's admin pages; of a sidecar without the filter there are none. Waits for [`TOLD`] first.
    pub(crate) fn read(admin: SocketAddr) -> Result<Self> {
        std::thread::sleep(TOLD);
        let page = http::get(admin, "/stats/prometheus?filter=weir_decisions")?;
        Self::parse(&page.body).context("the sidecar's weir_decisions_total")
    }

    fn parse(page: &str) -> Option<Self> {
        let lines = weir_exposition::lines(page).filter(|line| line.name == "weir_decisions_total");
        let read = lines.map(|line| {
            let (series, count) = line.read().ok()?;
            Some((series.label("reason")?.to_owned(), count as u64))
        });
        read.collect::<Option<_>>().map(Self)
    }

    /// Whether a choice was made from a table.
    pub(crate) fn with_table(&self) -> bool {
        self.all() > self.of(Reason::NoTable)
    }

    /// Fails unless every answer was decided by what the filter knows of the request's key, and came from where
    /// it said: as many from the one host that has the key as were sent there because it has it, the others for
    /// one of the two reasons to go elsewhere.
    pub(crate) fn check(&self, from_holder: u64, from_elsewhere: u64) -> Result<()> {
        let holder = self.of(Reason::KnownCached);
        let elsewhere = self.of(Reason::AssumedCached) + self.of(Reason::NotCached);
        ensure!(
            (holder, elsewhere) == (from_holder, from_elsewhere)
                && self.all() == from_holder + from_elsewhere,
            "{from_holder} answers came from the host that has the key and {from_elsewhere} from others, \
             and the filter decided: {self}"
        );
        Ok(())
    }

    /// Fails where more requests left the host with their key than went there: of many slices, as in one in which the
    /// machine stalls jobs wait at all hosts, and to leave them is right.
    pub(crate) fn check_balance(&self) -> Result<()> {
        let elsewhere = self.of(Reason::AssumedCached) + self.of(Reason::NotCached);
        ensure!(
            elsewhere <= self.of(Reason::KnownCached),
            "most requests left the host that has the key: {self}"
        );
        Ok(())
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        let earlier = |reason: &str| before.0.get(reason).copied().unwrap_or(0);
        let new = |(reason, count): (&String, &u64)| {
            let count = count.saturating_sub(earlier(reason));
            (count > 0).then(|| (reason.clone(), count))
        };
        Self(self.0.iter().filter_map(new).collect())
    }

    pub(crate) fn add(&mut self, more: &Self) {
        for (reason, count) in &more.0 {
            *self.0.entry(reason.clone()).or_default() += count;
        }
    }

    fn of(&self, reason: Reason) -> u64 {
        self.0.get(reason.as_str()).copied().unwrap_or(0)
    }

    fn all(&self) -> u64 {
        self.0.values().sum()
    }
}

/// Shares of all choices.
impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |count: u64| digits(count as f64 * 100.0 / self.all() as f64);
        let share = |(reason, count): (&String, &u64)| format!("{reason} {} %", percent(*count));
        let shares: Vec<String> = self.0.iter().map(share).collect();
        match shares.is_empty() {
            true => f.write_str("nothing"),
            false => f.write_str(&shares.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(counts: &[(&str, u64)]) -> Reasons {
        let sample = |(reason, count): &(&str, u64)| {
            format!("weir_decisions_total{{reason=\"{reason}\"}} {count}\n")
        };
        let samples: String = counts.iter().map(sample).collect();
        Reasons::parse(&format!("# TYPE weir_decisions_total counter\n{samples}")).unwrap()
    }

    #[test]
    fn choices_without_a_table_are_told_from_others() {
        assert!(!page(&[("no_table", 3)]).with_table());
        assert!(page(&[("no_table", 3), ("known_cached", 1)]).with_table());
        assert!(!page(&[]).with_table());
    }

    #[test]
    fn only_what_came_since_counts() {
        let before = page(&[("no_table", 3), ("known_cached", 2)]);
        let mut all = page(&[("no_table", 3), ("known_cached", 7)]).since(&before);
        assert_eq!(all.to_string(), "known_cached 100 %");
        all.add(&page(&[("no_table", 1), ("known_cached", 4)]));
        assert_eq!(all, page(&[("known_cached", 9), ("no_table", 1)]));
    }

    #[test]
    fn what_cannot_be_read_is_no_count() {
        assert_eq!(
            Reasons::parse("weir_decisions_total{reason=\"x\"} many"),
            None
        );
    }

    #[test]
    fn a_request_leaves_the_host_that_has_its_key_only_for_a_stated_reason() {
        let reasons = page(&[
            ("known_cached", 7),
            ("assumed_cached", 1),
            ("not_cached", 2),
        ]);
        reasons.check(7, 3).unwrap();
        reasons.check_balance().unwrap();
        let mostly_elsewhere = page(&[("known_cached", 3), ("not_cached", 7)]);
        assert!(mostly_elsewhere.check_balance().is_err());
        let error = reasons.check(8, 2).unwrap_err().to_string();
        assert!(error.contains("8 answers came from the host"), "{error}");
    }

    #[test]
    fn answers_that_the_filter_did_not_decide_by_the_key_are_noticed() {
        assert!(page(&[]).check(7, 3).is_err(), "not in the path");
        for other in ["no_table", "stale_table", "random", "panic"] {
            let reasons = page(&[("known_cached", 7), (other, 3)]);
            assert!(reasons.check(7, 3).is_err(), "{other}");
            assert!(reasons.check(7, 0).is_err(), "{other} beside the answers");
        }
        // Cache contents never came, and by chance one request found its host.
        assert!(page(&[("not_cached", 10)]).check(1, 9).is_err());
    }
}
