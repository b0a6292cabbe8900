// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::experiments::outcome::Row;
use crate::experiments::workloads::WORKLOADS;

fn outcome(wait: f64) -> Outcome {
    let row = |mean: f64| Row {
        mean,
        p50: mean / 2.0,
        p90: 2.0 * mean,
        p95: 3.0 * mean,
        p99: 4.0 * mean,
    };
    let group = || Group {
        requests: 1000,
        failed: 5,
        duration_s: row(wait + 1.0),
        wait_s: row(wait),
        host_duration_s: row(wait),
        host_wait_s: row(wait),
    };
    Outcome {
        high: group(),
        low: group(),
        hit_ratio: 0.9,
        shed: 100,
        goodput: Some(0.5),
        load_deviation: Some(0.04),
    }
}

#[test]
fn a_row_has_the_mean_of_the_seeds_their_spread_and_the_ratios() {
    let setting = |name| Setting::plain(&WORKLOADS[0], named(name).unwrap());
    let outcomes = Outcomes::of([
        (setting(CLAIRVOYANT), vec![outcome(0.0), outcome(0.0)]),
        (setting(REFERENCE), vec![outcome(1.0), outcome(3.0)]),
        (setting("random"), vec![outcome(2.0), outcome(9.0)]),
    ]);
    let table = compared(&WORKLOADS[0], &outcomes, Priority::Low);
    assert!(table.rows.iter().all(|row| row.len() == table.header.len()));
    let row = |name: &str| {
        table
            .rows
            .iter()
            .find(|row| row[0] == name)
            .unwrap()
            .clone()
    };
    let random = row("random");
    assert_eq!(random[1], "6.50 (3.00–10.0)");
    assert_eq!(random[9], "2.75× (2.00×–3.00×)");
    assert_eq!(random[10], "6.50× (3.00×–10.0×)");
    assert_eq!(random[14], "0.50 %");
    assert_eq!(row(REFERENCE)[9], "1.00×");
    assert!(row("baseline").iter().skip(1).all(|cell| cell == "–"));
    let fleet = fleet(&WORKLOADS[0], &outcomes);
    let random = fleet.rows.iter().find(|row| row[0] == "random").unwrap();
    assert_eq!(random[1..], ["0.900", "0.050", "0.500"]);
}

#[test]
fn each_number_of_callers_is_held_against_one_and_against_the_clairvoyant() {
    let setting = |name, callers| Setting {
        callers,
        ..Setting::plain(&WORKLOADS[0], named(name).unwrap())
    };
    let outcomes = Outcomes::of([
        (setting(CLAIRVOYANT, 1), vec![outcome(0.0), outcome(0.0)]),
        (setting("estimate", 1), vec![outcome(1.0), outcome(1.0)]),
        (setting("estimate", 64), vec![outcome(2.0), outcome(3.0)]),
    ]);
    let table = by_callers(&WORKLOADS[0], &outcomes);
    assert!(table.rows.iter().all(|row| row.len() == table.header.len()));
    let [one, many] = &table.rows[..] else {
        panic!("{:?}", table.rows);
    };
    assert_eq!(one[..4], ["estimate", "1", "1.00", "1.00×"]);
    assert_eq!(many[..3], ["estimate", "64", "2.50 (2.00–3.00)"]);
    assert_eq!(many[3], "2.50× (2.00×–3.00×)");
    assert_eq!(many[4], "3.50× (3.00×–4.00×)");
    assert_eq!(many[7], "0.040");
}

#[test]
fn seconds_keep_the_digits_that_count() {
    let shown = [0.00054, 0.0123, 1.234, 12.34, 123.4].map(seconds);
    assert_eq!(shown, ["0.00054", "0.012", "1.23", "12.3", "123"]);
}
