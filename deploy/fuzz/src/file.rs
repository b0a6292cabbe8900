// SPDX-License-Identifier: Apache-2.0
//! Decoders that open a file themselves: they get one, in a folder of its own for each thread.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weir_control::config;
use weir_policy::MAX_HOSTS;

use crate::laws::accepted;

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().expect("a folder");
}

/// The path of a file of this name that has these bytes.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = FOLDER.with(|folder| folder.path().join(name));
    std::fs::write(&path, bytes).expect("a file");
    path
}

fn load(path: &Path) -> bool {
    let Some(loaded) = accepted(config::load(path).map_err(|(error, _)| error)) else {
        return false;
    };
    for cluster in loaded.config.clusters.values() {
        assert!(cluster.hosts.len() <= MAX_HOSTS);
        for host in &cluster.hosts {
            host.address.parse::<SocketAddr>().expect("an address");
        }
    }
    true
}

pub(crate) fn configuration(bytes: &[u8]) -> bool {
    file("hosts.yaml", b"[ { address: \"127.0.0.1:9001\" } ]");
    file("plan.csv", b"key,address\na,127.0.0.1:9001\n");
    load(&file("weir-control.yaml", bytes))
}

/// The hosts that a configuration names by a file.
pub(crate) fn hosts_file(bytes: &[u8]) -> bool {
    file("hosts.yaml", bytes);
    let text = b"clusters: { rules: { hosts_file: hosts.yaml } }\n";
    load(&file("weir-control.yaml", text))
}

/// The plan that a configuration names by a file.
pub(crate) fn caching_plan(bytes: &[u8]) -> bool {
    file("plan.csv", bytes);
    let text = b"clusters: { rules: { hosts: [ { address: \"127.0.0.1:9001\" } ], \
                 policy: { selection: caching_plan }, caching_plan: plan.csv } }\n";
    load(&file("weir-control.yaml", text))
}

pub(crate) fn governor_configuration(bytes: &[u8]) -> bool {
    let path = file("weir-governor.yaml", bytes);
    let Some(config) = accepted(weir_governor::config::load(&path)) else {
        return false;
    };
    config.warnings();
    true
}

/// A program, of which a function is to be watched.
pub(crate) fn elf(bytes: &[u8]) -> bool {
    let path = file("program", bytes);
    let mut found = false;
    for symbol in ["hot", "search::evaluate", "0x1000"] {
        found |= accepted(weir_uprobe::find(&path, symbol, false)).is_some();
    }
    found
}
