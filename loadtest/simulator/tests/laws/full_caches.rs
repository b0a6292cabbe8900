// SPDX-License-Identifier: Apache-2.0
//! Caches that all together hold each key once, and few twice.

use weir_executor::Source;
use weir_policy::{Overload, Selection};
use weir_sim::{Ended, Scenario};

use crate::{SECOND, jobs, keys, play, policy, scenario};

const KEYS: u32 = 24;

/// Of what is asked for in the second half, the part that is found.
fn found_at_last(selection: Selection) -> f64 {
    let calm = scenario();
    let tight = Scenario {
        hosts: 3,
        host: weir_executor::Settings {
            cores: 1,
            // Keys have a megabyte: eight are a host's share, and there is room for two more.
            cache_bytes: 10_000_000,
            ..calm.host
        },
        policy: policy(selection, Overload::None),
        ..calm
    };
    let asked = jobs(20_000, KEYS, SECOND / 120, SECOND / 100, 9);
    let all = play(&tight, &keys(KEYS as usize), asked);
    let begun = all.iter().map(|ended| ended.at).max().unwrap_or_default() / 2;
    let late = |ended: &&Ended| ended.at > begun;
    let sources = all
        .iter()
        .filter(late)
        .filter_map(|ended| ended.spent.as_ref());
    let found: Vec<bool> = sources.map(|spent| spent.source == Source::Hit).collect();
    assert!(found.len() > 10_000);
    found.iter().filter(|found| **found).count() as f64 / found.len() as f64
}

#[test]
fn each_host_comes_to_have_keys_of_its_own_by_estimate_as_by_dynamic() {
    let [estimate, dynamic] = [Selection::Estimate, Selection::Dynamic].map(found_at_last);
    assert!(estimate > 0.97 * dynamic, "{estimate}, {dynamic}");
    assert!(dynamic > 0.99, "{dynamic}");
}
