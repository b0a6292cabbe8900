// SPDX-License-Identifier: Apache-2.0
//! What the demonstration with emulated hosts claims, held against its own figures.

use crate::demo::table::Row;

struct Claim {
    ours: &'static str,
    theirs: &'static str,
    measure: Measure,
}

#[derive(Clone, Copy)]
enum Measure {
    CacheHits,
    P99Wait,
}

/// The defaults, and document 001's own rule where something keeps it from drowning a host.
const OURS: [&str; 3] = [
    "weir estimate+none",
    "weir dynamic+breaker",
    "weir dynamic+dagor",
];

/// A line for each claim whose two ways were run. `all` has one row a way, over all priorities.
pub(super) fn lines(all: &[&Row]) -> Vec<String> {
    let claim = |ours, theirs, measure| Claim {
        ours,
        theirs,
        measure,
    };
    let claims = OURS.iter().flat_map(|ours| {
        [
            claim(ours, "envoy least_request", Measure::CacheHits),
            claim(ours, "envoy ring_hash", Measure::P99Wait),
        ]
    });
    let [defaults, ..] = OURS;
    let faster = claim(defaults, "envoy least_request", Measure::P99Wait);
    let claims = claims.chain([faster]);
    claims.filter_map(|claim| claim.line(all)).collect()
}

impl Claim {
    fn line(&self, all: &[&Row]) -> Option<String> {
        let find = |name: &str| all.iter().copied().find(|row| row.way == name);
        let (ours, theirs) = (find(self.ours)?, find(self.theirs)?);
        if ours.failed == ours.requests || theirs.failed == theirs.requests {
            let (ours, theirs) = (self.ours, self.theirs);
            return Some(format!(
                "{ours} cannot be held against {theirs}: one of them served nothing"
            ));
        }
        let (holds, figures) = match self.measure {
            Measure::CacheHits => (
                ours.hits > theirs.hits,
                format!(
                    "cache hits {:.1} % against {:.1} %",
                    100.0 * ours.hits,
                    100.0 * theirs.hits
                ),
            ),
            Measure::P99Wait => (
                ours.wait.p99 < theirs.wait.p99,
                format!(
                    "p99 wait {:.0} ms against {:.0} ms",
                    ours.wait.p99, theirs.wait.p99
                ),
            ),
        };
        let word = if holds { "better" } else { "NOT BETTER" };
        Some(format!(
            "{} is {word} than {}: {figures}",
            self.ours, self.theirs
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(way: &str, hits: f64, p99: f64) -> Row {
        let mut row = Row::made_up(way, 1.0, hits);
        row.wait.p99 = p99;
        row
    }

    #[test]
    fn claims_are_held_against_the_figures_also_when_they_fail() {
        let rows = [
            row("envoy least_request", 0.70, 5.0),
            row("envoy ring_hash", 0.99, 900.0),
            row("weir dynamic+breaker", 0.60, 30.0),
            row("weir estimate+none", 0.98, 4.0),
        ];
        let all: Vec<&Row> = rows.iter().collect();
        assert_eq!(
            lines(&all),
            [
                "weir estimate+none is better than envoy least_request: cache hits 98.0 % against 70.0 %",
                "weir estimate+none is better than envoy ring_hash: p99 wait 4 ms against 900 ms",
                "weir dynamic+breaker is NOT BETTER than envoy least_request: cache hits 60.0 % against 70.0 %",
                "weir dynamic+breaker is better than envoy ring_hash: p99 wait 30 ms against 900 ms",
                "weir estimate+none is better than envoy least_request: p99 wait 4 ms against 5 ms",
            ]
        );
        assert!(lines(&all[..2]).is_empty());
        let mut rows = rows;
        rows[1].failed = rows[1].requests;
        let all: Vec<&Row> = rows.iter().collect();
        assert!(lines(&all)[1].contains("cannot be held against envoy ring_hash"));
    }
}
