// SPDX-License-Identifier: Apache-2.0
//! What the filter costs, held against the figures in `tests/kept.toml`: exactly, because one build of the
//! module costs the same on every machine. A change that moves them has to be worth it, and then renews them:
//! `cargo xtask keep`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use weir_harness::cost::{self, Fleet, Request};
use weir_policy::Reason;
use weir_reference::RENEW;

const HEAD: &str = "\
# What the filter costs in WebAssembly: fuel, about one unit an instruction, and how often it calls the host.
# Held exactly by tests/filter/cost.rs, renewed by `cargo xtask keep`. A change of these lines tells its reason.
";

/// A fleet of ten thousand cached keys.
const TEN_THOUSAND_KEYS: Fleet = Fleet {
    hosts: 10,
    keys: 1000,
    shards: 16,
};

#[test]
fn fuel_and_host_calls_are_those_that_are_kept() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept.toml");
    let (now, kept) = (figures(), fs::read_to_string(&file).unwrap_or_default());
    let changes = changes(&kept, &now);
    if std::env::var_os(RENEW).is_some() {
        print!("{changes}");
        return fs::write(&file, now).expect("tests/kept.toml can be written");
    }
    assert!(
        kept == now,
        "other figures than tests/kept.toml has, for good reason? `cargo xtask keep` renews it\n{changes}"
    );
}

fn figures() -> String {
    let tick = cost::tick();
    let taken = cost::take(TEN_THOUSAND_KEYS, |work| work());
    let others = format!(
        "\n[tick]\nowner = {}\nother = {}\n\n[take-10000-keys]\nowner = {}\nother = {}\n\n[request]\n",
        tick.owner, tick.other, taken.owner_fuel, taken.fuel
    );
    let requests = cost::requests();
    let requests: String = requests.iter().map(request).collect();
    [HEAD, &others, &requests].concat()
}

fn request(Request { name, fuel, calls }: &Request) -> String {
    let call =
        |(name, count): (&&str, &u64)| format!(", {} = {count}", name.trim_start_matches("proxy_"));
    let calls: String = calls.iter().map(call).collect();
    format!("\"{name}\" = {{ fuel = {fuel}{calls} }}\n")
}

/// The lines that differ, old and new.
fn changes(old: &str, new: &str) -> String {
    let (old, new) = (entries(old), entries(new));
    let mut told = String::new();
    for name in old
        .keys()
        .chain(new.keys().filter(|name| !old.contains_key(*name)))
    {
        let [was, is] =
            [&old, &new].map(|entries| entries.get(name).map_or("nothing", |value| value));
        if was != is {
            told.push_str(&format!("{name}\n  was {was}\n  is  {is}\n"));
        }
    }
    told
}

/// Values by table and name.
fn entries(text: &str) -> BTreeMap<String, &str> {
    let mut table = "";
    let mut entries = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(" = ") {
            Some((name, value)) => drop(entries.insert(format!("{table} {name}"), value)),
            None => table = line,
        }
    }
    entries
}

#[test]
fn every_reason_to_end_a_decision_has_its_cost() {
    let names: Vec<_> = cost::requests()
        .iter()
        .map(|request| request.name)
        .collect();
    for reason in Reason::ALL {
        let holds = matches!(reason, Reason::HeldForEligible | Reason::HeldForCached);
        assert_eq!(names.contains(&reason.as_str()), !holds, "{reason:?}");
    }
}

#[test]
fn changes_are_told_by_name() {
    let changes = changes("[a]\nx = 1\ny = 2\n", "[a]\nx = 1\ny = 3\nz = 4\n");
    assert_eq!(
        changes,
        "[a] y\n  was 2\n  is  3\n[a] z\n  was nothing\n  is  4\n"
    );
}

#[test]
fn fuel_does_not_grow_with_the_fleet() {
    let requests = cost::requests();
    let fuel = |name: &str| {
        requests
            .iter()
            .find(|request| request.name == name)
            .unwrap()
            .fuel
    };
    for name in ["known_cached", "not_cached"] {
        let (few, many) = (fuel(name), fuel(&format!("{name}, 1000 hosts")));
        assert!(
            many < 2 * few,
            "{name}: {many} with 1,000 hosts, {few} with 14"
        );
    }
}

#[test]
fn a_receipt_of_one_request_in_a_thousand_costs_less_than_a_hundredth() {
    let requests = cost::requests();
    let fuel = |end: &str| {
        let mut named = requests.iter();
        let named = named.find(|request| request.name == format!("known_cached, {end}"));
        named.unwrap().fuel as f64
    };
    let (none, each) = (fuel("none leaves a receipt"), fuel("each leaves a receipt"));
    assert!(each > none, "the receipts are written");
    assert!(
        (each - none) / 1000.0 < none / 100.0,
        "{each} with, {none} without"
    );
}
