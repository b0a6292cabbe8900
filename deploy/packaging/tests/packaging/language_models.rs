// SPDX-License-Identifier: Apache-2.0
//! The page for who has engines of language models: its commands, with emulated engines and an unmodified client.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

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

/// A program that runs another.
fn wrap(file: &Path, command: &str) {
    fs::write(file, format!("#!/bin/sh\nexec {command} \"$@\"\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What the page finds in the root of a clone in which everything is built.
fn clone_of_the_page(folder: &Path, script: &str) {
    for name in ["weir-llm-host", "weir-control", "weirctl"] {
        let file = format!("target/debug/{name}");
        assert!(script.contains(&file), "{file}");
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        symlink(PROGRAMS.path().join(name), file).unwrap();
    }
    symlink(FILTER.path(), folder.join("target/weir_filter.wasm")).unwrap();
    symlink(
        needs::root().join("envoy-config"),
        folder.join("envoy-config"),
    )
    .unwrap();
    let mut words = script.split_whitespace();
    let envoy = folder.join(words.find(|word| word.ends_with("/envoy")).unwrap());
    fs::create_dir_all(envoy.parent().unwrap()).unwrap();
    // How soon its threads hear of each other depends on how much else this machine has to do.
    wrap(
        &envoy,
        &format!("{} --concurrency 1", ENVOY.path().display()),
    );
}

fn the_guide_is_true() {
    let folder = TempDir::new().unwrap();
    let [clone, place, programs] = ["clone", "weir-llm", "bin"].map(|name| {
        let made = folder.path().join(name);
        fs::create_dir(&made).unwrap();
        made
    });
    let page = fs::read_to_string(needs::root().join("envoy-config/LANGUAGE_MODELS.md")).unwrap();
    let script: String = SECTIONS
        .map(|section| guide::blocks(&page, section))
        .concat();
    let script = script.replace(PLACE, place.to_str().unwrap());
    clone_of_the_page(&clone, &script);
    fs::create_dir(place.join("bin")).unwrap();
    let python = format!("env PYTHONPATH={} python3", OPENAI.path().display());
    wrap(&place.join("bin/python"), &python);

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
