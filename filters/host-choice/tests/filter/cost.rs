// SPDX-License-Identifier: Apache-2.0
//! What the filter costs, held against the figures in `tests/kept.toml`: exactly, because one build of the
//! module costs the same on every machine; of the other shell, whose calls of Envoy alone can be counted, against those
//! in `tests/kept_native.toml`. A change that moves them has to be worth it, and then renews them:
//! `cargo xtask keep`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use weir_harness::cost::{self, Fleet, Request};
use weir_harness::is_wasm;
use weir_policy::Reason;
use weir_reference::RENEW;

const HEAD: &str = "\
# What the filter costs in WebAssembly: fuel, about one unit an instruction, and how often it calls the host.
# Held exactly by tests/filter/cost.rs, renewed by `cargo xtask keep`. A change of these lines tells its reason.
";

const NATIVE_HEAD: &str = "\
# What the filter costs as a dynamic module, as far as it can be counted: how often it calls Envoy for a request.
# Held exactly by tests/filter/cost.rs, renewed by `cargo xtask keep`. A change of these lines tells its reason.

[request]
";

/// A fleet of ten thousand cached keys.
const TEN_THOUSAND_KEYS: Fleet = Fleet {
    hosts: 10,
    keys: 1000,
    shards: 16,
};

#[test]
fn fuel_and_host_calls_are_those_that_are_kept() {
    let name = match is_wasm() {
        true => "tests/kept.toml",
        false => "tests/kept_native.toml",
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let (now, kept) = (figures(), fs::read_to_string(&file).unwrap_or_default());
    let changes = changes(&kept, &now);
    if std::env::var_os(RENEW).is_some() {
        print!("{changes}");
        return fs::write(&file, now).expect("what is kept can be written");
    }
    assert!(
        kept == now,
        "other figures than {name} has, for good reason? `cargo xtask keep` renews it\n{changes}"
    );
}

fn figures() -> String {
    let requests: String = cost::requests().iter().map(request).collect();
    if !is_wasm() {
        return [NATIVE_HEAD, &requests].concat();
    }
    let tick = cost::tick();
    let taken = cost::take(TEN_THOUSAND_KEYS, |work| work());
    let others = format!(
        "\n[tick]\nowner = {}\nother = {}\n\n[take-10000-keys]\nowner = {}\nother = {}\n\n[request]\n",
        tick.owner, tick.other, taken.owner_fuel, taken.fuel
    );
    [HEAD, &others, &requests].concat()
}

fn request(Request { name, fuel, calls }: &Request) -> String {
    let call =
        |(name, count): (&&str, &u64)| format!(", {} = {count}", name.trim_start_matches("proxy_"));
    let calls: String = calls.iter().map(call).collect();
    let all = match is_wasm() {
        true => format!("fuel = {fuel}{calls}"),
        false => calls.trim_start_matches(", ").to_owned(),
    };
    format!("\"{name}\" = {{ {all} }}\n")
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
