// SPDX-License-Identifier: Apache-2.0
//! The page for who has engines of language models: its commands, with emulated engines and an unmodified client.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use tempfile::TempDir;

use crate::Test;
use crate::guide;
use crate::needs::{self, ENVOY, FILTER, Need, OPENAI, PROGRAMS};

pub(crate) const TESTS: &[Test] = &[(
    "conversations_with_engines_stay_where_they_were_as_the_guide_says",
    &[OPENAI, ENVOY, FILTER, PROGRAMS, Need::UserNamespace],
    the_guide_is_true,
)];

/// All that are played: what comes before them is downloaded and built.
const SECTIONS: [&str; 4] = [
    "2. Engines",
    "3. weir-control",
    "4. Envoy",
    "5. A conversation",
];
/// Where the page has its files.
const PLACE: &str = "/tmp/weir-llm";

fn the_guide_is_true() {
    let folder = TempDir::new().unwrap();
    let [clone, place, programs] = guide::folders(&folder, ["clone", "weir-llm", "bin"]);
    let page = fs::read_to_string(needs::root().join("envoy-config/LANGUAGE_MODELS.md")).unwrap();
    let script: String = SECTIONS
        .map(|section| guide::blocks(&page, section))
        .concat();
    let script = script.replace(PLACE, place.to_str().unwrap());
    guide::clone(
        &clone,
        &script,
        &["weir-llm-host", "weir-control", "weirctl"],
    );
    fs::create_dir(place.join("bin")).unwrap();
    let python = format!("env PYTHONPATH={} python3", OPENAI.path().display());
    guide::wrap(&place.join("bin/python"), &python);

    let said = guide::play(&script, &clone, &programs);
    stay_where_they_were(&said);
    for expected in ["weir_bodies_total{", "3 hosts"] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
}

/// A line for each turn: what it was about, its number, the host, the reason and how many events came.
fn stay_where_they_were(said: &str) {
    let mut talks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in said.lines().filter(|line| line.ends_with(" events")) {
        let words: Vec<&str> = line.split(' ').collect();
        let [about, _, host, reason, events, _] = words[..] else {
            panic!("{line}");
        };
        assert!(
            ["not_cached:", "assumed_cached:"].contains(&reason),
            "{line}"
        );
        assert!(events.parse::<u32>().unwrap() > 1, "{line}");
        talks.entry(about).or_default().push(host);
    }
    assert_eq!(talks.len(), 3, "{said}");
    for (about, hosts) in &talks {
        assert_eq!(hosts.len(), 3, "{about}:\n{said}");
        let hosts: BTreeSet<_> = hosts.iter().collect();
        assert_eq!(hosts.len(), 1, "{about} moves:\n{said}");
    }
}
