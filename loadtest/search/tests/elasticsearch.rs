// SPDX-License-Identifier: Apache-2.0
//! The real engine under the agent, small.

use std::env;
use std::path::{Path, PathBuf};

use weir_search::client::Client;
use weir_search::index::Index;
use weir_search::node::{self, Places, Programs};
use weir_search::queries::{self, Load};
use weir_search::ring;
use weir_search::terms::Terms;
use weir_search::way::Way;
use weir_stage::processes::Processes;

const QUERIES: usize = 50;
/// Each is searched by one call of the hot function, which leaves two events.
const SHARDS: usize = 2;

fn built(variable: &str) -> PathBuf {
    let path = env::var_os(variable).map(PathBuf::from);
    path.unwrap_or_else(|| {
        panic!("{variable} is not set: `cargo xtask test` builds it and sets it")
    })
}

#[test]
fn every_search_of_a_shard_leaves_an_enter_and_a_leave_and_no_thread_stays_inside() {
    let folder = tempfile::tempdir().unwrap();
    let mut processes = Processes::new(folder.path().join("logs")).unwrap();
    let programs = Programs {
        node: built("WEIR_SEARCH_NODE"),
        agent: built("WEIR_EVENTS_AGENT"),
    };
    let counts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/cloudsuite_term_counts.csv");
    let index = Index {
        node: &programs.node,
        counts: &counts,
        documents: 2_000,
        seed: 1,
    };
    let kept = index.kept(folder.path(), &mut processes).unwrap();
    let places = Places {
        folder: folder.path().join("node"),
        events: folder.path().join("es.events"),
    };
    ring::create(&places.events).unwrap();
    let way = Way::Instrumented;
    let node = node::start(way, &programs, &kept, &places, &mut processes).unwrap();
    assert_eq!(ring::written_and_at_rest(&places.events).unwrap(), 0);

    let terms = Terms::read(&counts).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut client = Client::connect(node.address).await.unwrap();
        for body in queries::bodies(&terms, Load::Mixed, QUERIES, 1) {
            client.ask(&body).await.unwrap();
        }
    });
    let written = ring::written_and_at_rest(&places.events).unwrap();
    assert_eq!(written, (QUERIES * SHARDS * 2) as u64);
}
