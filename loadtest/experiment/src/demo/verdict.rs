// SPDX-License-Identifier: Apache-2.0
//! What the demonstration with emulated hosts claims, held against its own figures.

use crate::demo::table::Row;
use crate::demo::ways::{BeforeHosts, DEFAULTS, EIGHT, Kind, WAYS, Way};

struct Claim {
    ours: &'static str,
    theirs: &'static str,
    measures: &'static [Measure],
}

#[derive(Clone, Copy)]
enum Measure {
    Mean,
    P99Wait,
    CacheHits,
}

/// Document 001's own rule where something keeps it from drowning a host.
const DYNAMIC: [&str; 2] = ["weir dynamic+breaker", "weir dynamic+dagor"];

/// A line for each claim whose two ways were run. `all` has one row a way, over all priorities.
pub(super) fn lines(all: &[&Row]) -> Vec<String> {
    let claims = defaults().chain(bounces()).chain(dynamic());
    claims.filter_map(|claim| claim.line(all)).collect()
}

/// The defaults are better than each of Envoy's own ways with the same sidecars, in everything at once.
fn defaults() -> impl Iterator<Item = Claim> {
    let alone =
        |way: &&Way| way.name.starts_with(DEFAULTS) && way.before_hosts == BeforeHosts::Nothing;
    WAYS.iter().filter(alone).flat_map(|ours| {
        let theirs =
            |way: &&Way| matches!(way.kind, Kind::Envoy(_)) && way.sidecars == ours.sidecars;
        WAYS.iter().filter(theirs).map(|theirs| Claim {
            ours: ours.name,
            theirs: theirs.name,
            measures: &[Measure::Mean, Measure::P99Wait, Measure::CacheHits],
        })
    })
}

/// Of many threads none knows of the others in time, so hosts that give requests back are faster than the same hosts
/// without. They are not with few.
fn bounces() -> impl Iterator<Item = Claim> {
    let before = |wanted| {
        let ways = WAYS.iter().filter(|way| way.sidecars == EIGHT);
        ways.filter(move |way| way.before_hosts == wanted)
    };
    before(BeforeHosts::Weir).flat_map(move |ours| {
        before(BeforeHosts::Envoy).map(|theirs| Claim {
            ours: ours.name,
            theirs: theirs.name,
            measures: &[Measure::Mean, Measure::P99Wait],
        })
    })
}

fn dynamic() -> impl Iterator<Item = Claim> {
    let claims = |ours| {
        let claim = |theirs, measures| Claim {
            ours,
            theirs,
            measures,
        };
        [
            claim("envoy least_request", &[Measure::CacheHits] as &[_]),
            claim("envoy ring_hash", &[Measure::P99Wait]),
        ]
    };
    DYNAMIC.into_iter().flat_map(claims)
}

impl Claim {
    fn line(&self, all: &[&Row]) -> Option<String> {
        let find = |name: &str| all.iter().copied().find(|row| row.way == name);
        let (our_row, their_row) = (find(self.ours)?, find(self.theirs)?);
        let Self { ours, theirs, .. } = self;
        if our_row.failed == our_row.requests || their_row.failed == their_row.requests {
            return Some(format!(
                "{ours} cannot be held against {theirs}: one of them served nothing"
            ));
        }
        let figures = |wanted: bool| {
            let measures = self.measures.iter();
            let figures = measures
                .map(|measure| measure.figures(our_row, their_row))
                .filter(|(better, _)| *better == wanted)
                .map(|(_, figures)| figures);
            figures.collect::<Vec<_>>().join(", ")
        };
        let (better, mut not) = (figures(true), figures(false));
        if our_row.failed > their_row.failed {
            let without = format!(
                "{} requests without a good answer against {}",
                our_row.failed, their_row.failed
            );
            not = match not.is_empty() {
                true => without,
                false => [not, without].join(", "),
            };
        }
        Some(match (&*better, &*not) {
            (_, "") => format!("{ours} is better than {theirs}: {better}"),
            ("", _) => format!("{ours} is NOT BETTER than {theirs}: {not}"),
            _ => format!("{ours} is better than {theirs} in {better}; NOT BETTER in {not}"),
        })
    }
}

impl Measure {
    /// Whether ours is better, and both.
    fn figures(self, ours: &Row, theirs: &Row) -> (bool, String) {
        let less = |name: &str, ours: f64, theirs: f64| {
            let figures = format!("{name} {ours:.0} ms against {theirs:.0} ms");
            (ours < theirs, figures)
        };
        match self {
            Self::Mean => less("mean", ours.duration.mean, theirs.duration.mean),
            Self::P99Wait => less("p99 wait", ours.wait.p99, theirs.wait.p99),
            Self::CacheHits => (
                ours.hits > theirs.hits,
                format!(
                    "cache hits {:.1} % against {:.1} %",
                    100.0 * ours.hits,
                    100.0 * theirs.hits
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(way: &str, hits: f64, p99: f64) -> Row {
        Row::made_up(way, p99, hits)
    }

    #[test]
    fn claims_are_of_ways_that_there_are() {
        let named = |name: &str| WAYS.iter().any(|way| way.name == name);
        let mut claims = defaults().chain(bounces()).chain(dynamic());
        assert!(claims.all(|claim| named(claim.ours) && named(claim.theirs)));
    }

    #[test]
    fn claims_are_held_against_the_figures_also_when_they_fail() {
        let rows = [
            row("envoy least_request", 0.70, 5.0),
            row("envoy ring_hash", 0.99, 900.0),
            row("envoy least_request 8x8", 0.99, 1.0),
            row("weir dynamic+breaker", 0.60, 30.0),
            row("weir estimate+none", 0.98, 4.0),
            row("weir estimate+none 8x8", 0.98, 4.0),
            row("weir estimate+none hop 8x8", 0.98, 4.0),
            row("weir estimate+none bounces 8x8", 0.97, 3.0),
        ];
        let all: Vec<&Row> = rows.iter().collect();
        assert_eq!(
            lines(&all),
            [
                "weir estimate+none is better than envoy least_request: mean 4 ms against 5 ms, p99 wait 4 ms against 5 ms, \
                 cache hits 98.0 % against 70.0 %",
                "weir estimate+none is better than envoy ring_hash in mean 4 ms against 900 ms, p99 wait 4 ms against \
                 900 ms; NOT BETTER in cache hits 98.0 % against 99.0 %",
                "weir estimate+none 8x8 is NOT BETTER than envoy least_request 8x8: mean 4 ms against 1 ms, p99 wait 4 ms \
                 against 1 ms, cache hits 98.0 % against 99.0 %",
                "weir estimate+none bounces 8x8 is better than weir estimate+none hop 8x8: mean 3 ms against 4 ms, \
                 p99 wait 3 ms against 4 ms",
                "weir dynamic+breaker is NOT BETTER than envoy least_request: cache hits 60.0 % against 70.0 %",
                "weir dynamic+breaker is better than envoy ring_hash: p99 wait 30 ms against 900 ms",
            ]
        );
        assert!(lines(&all[..2]).is_empty());
        let mut rows = rows;
        rows[1].failed = rows[1].requests;
        let all: Vec<&Row> = rows.iter().collect();
        assert!(lines(&all)[1].contains("cannot be held against envoy ring_hash"));
        (rows[4].requests, rows[4].failed) = (9, 1);
        let all: Vec<&Row> = rows.iter().collect();
        let first = &lines(&all)[0];
        assert!(
            first.ends_with("; NOT BETTER in 1 requests without a good answer against 0"),
            "{first}"
        );
    }
}
