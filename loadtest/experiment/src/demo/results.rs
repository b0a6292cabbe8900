// SPDX-License-Identifier: Apache-2.0
//! From the records of requests to the rows of the table.

use std::collections::BTreeMap;

use weir_report::quantile_of_sorted;

use crate::demo::table::{Row, Spread};
use crate::demo::workload::PRIORITIES;
use crate::replay::{Record, Served};

/// The figures of a way: each priority's, and those of all requests.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) by_priority: Vec<Row>,
    pub(super) all: Row,
    /// Time outside the host of requests that were answered at the first attempt.
    pub(super) outside: Spread,
}

impl Figures {
    pub(super) fn new(way: &str, records: &[Record]) -> Self {
        Self {
            by_priority: rows(way, records),
            all: row(way, "all", records.iter().collect()),
            outside: Spread::of(records.iter().filter_map(Record::outside).collect()),
        }
    }
}

/// One row for each priority.
fn rows(way: &str, records: &[Record]) -> Vec<Row> {
    let row = |priority: &&str| {
        let of_priority = records.iter().filter(|record| record.priority == *priority);
        row(way, priority, of_priority.collect())
    };
    PRIORITIES.iter().map(row).collect()
}

fn row(way: &str, priority: &str, records: Vec<&Record>) -> Row {
    let served: Vec<&Served> = records.iter().filter_map(|r| r.served.as_ref()).collect();
    let hits = served.iter().filter(|served| served.hit).count();
    Row {
        way: way.to_owned(),
        priority: priority.to_owned(),
        requests: records.len() as u64,
        duration: Spread::of(records.iter().map(|record| record.duration).collect()),
        wait: Spread::of(served.iter().map(|served| served.wait).collect()),
        hits: hits as f64 / served.len() as f64,
        shed: records.iter().map(|record| record.shed_attempts).sum(),
        failed: (records.len() - served.len()) as u64,
        unevenness: unevenness(&served),
    }
}

impl Spread {
    /// Mean and nearest-rank quantiles. Not numbers where there is nothing to tell of.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let quantile = |q: f64| quantile_of_sorted(&values, q).unwrap_or(f64::NAN);
        Self {
            mean: mean(&values),
            p50: quantile(0.50),
            p90: quantile(0.90),
            p95: quantile(0.95),
            p99: quantile(0.99),
        }
    }
}

/// Coefficient of variation of the hosts' mean waits.
fn unevenness(served: &[&Served]) -> f64 {
    let mut waits: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for served in served {
        waits.entry(&served.host).or_default().push(served.wait);
    }
    let means: Vec<f64> = waits.values().map(|waits| mean(waits)).collect();
    let center = mean(&means);
    let variance = mean(
        &means
            .iter()
            .map(|m| (m - center).powi(2))
            .collect::<Vec<_>>(),
    );
    variance.sqrt() / center
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_replay::record::Outcome;

    #[test]
    fn quantiles_are_of_recorded_values() {
        let spread = Spread::of((1..=200).rev().map(f64::from).collect());
        assert_eq!((spread.mean, spread.p50, spread.p90), (100.5, 100.0, 180.0));
        assert_eq!((spread.p95, spread.p99), (190.0, 198.0));
    }

    #[test]
    fn one_value_is_all_its_quantiles() {
        let spread = Spread::of(vec![7.0]);
        assert_eq!((spread.mean, spread.p50, spread.p99), (7.0, 7.0, 7.0));
    }

    #[test]
    fn priorities_are_told_apart_and_failures_count_in_the_duration_only() {
        let failed = Record {
            duration: 990.0,
            outcome: Outcome::Shed,
            attempts: 4,
            shed_attempts: 4,
            served: None,
            ..Record::good("high", "a", 0.0, true)
        };
        let records = [
            Record::good("high", "a", 0.0, true),
            failed,
            Record::good("low", "a", 5.0, false),
        ];
        let rows = rows("way", &records);
        assert_eq!((rows[0].requests, rows[0].failed, rows[0].shed), (2, 1, 4));
        assert_eq!(
            (rows[0].duration.mean, rows[0].wait.mean, rows[0].hits),
            (500.0, 0.0, 1.0)
        );
        assert_eq!(
            (rows[1].requests, rows[1].failed, rows[1].hits),
            (1, 0, 0.0)
        );
    }

    #[test]
    fn hosts_with_equal_waits_are_even() {
        let records = [
            Record::good("low", "a", 4.0, true),
            Record::good("low", "b", 2.0, true),
            Record::good("low", "b", 6.0, true),
        ];
        assert_eq!(rows("way", &records)[1].unevenness, 0.0);
        let records = [
            Record::good("low", "a", 1.0, true),
            Record::good("low", "b", 3.0, true),
        ];
        assert_eq!(rows("way", &records)[1].unevenness, 0.5);
    }
}
