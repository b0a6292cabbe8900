// SPDX-License-Identifier: Apache-2.0
//! The real engine under the agent, the governor and the profiler, small.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_experiment::search::client::Client;
use weir_experiment::search::governor;
use weir_experiment::search::index::Index;
use weir_experiment::search::node::{self, Places, Programs};
use weir_experiment::search::profile::profile;
use weir_experiment::search::queries::{self, Load};
use weir_experiment::search::ring::Watch;
use weir_experiment::search::terms::Terms;
use weir_experiment::search::way::{HOT, Way};
use weir_needs::provided_or_skip;
use weir_stage::processes::Processes;

const QUERIES: usize = 50;
/// Each is searched by one call of the hot function, which leaves two events.
const SHARDS: usize = 2;
const CALM: Duration = Duration::from_secs(30);

/// None, and the test skipped, where one of them is not there.
fn programs() -> Option<(Programs, PathBuf)> {
    let programs = Programs {
        node: provided_or_skip("WEIR_SEARCH_NODE")?,
        agent: provided_or_skip("WEIR_EVENTS_AGENT")?,
    };
    Some((programs, provided_or_skip("WEIR_BIN_DIR")?))
}

/// Enough for a query to take a while.
const DOCUMENTS: usize = 20_000;
/// Stacks are sampled for so long, and then calls observed.
const PROFILED: Duration = Duration::from_secs(8);

#[test]
fn the_hot_function_is_found_by_whoever_was_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut processes = Processes::new(folder.path().join("logs")).unwrap();
    let Some((programs, _)) = programs() else {
        return;
    };
    let counts = counts();
    let index = Index {
        node: &programs.node,
        counts: &counts,
        documents: DOCUMENTS,
        seed: 1,
    };
    let kept = index.kept(folder.path(), &mut processes).unwrap();
    let places = Places {
        folder: folder.path().join("node"),
        events: folder.path().join("none.events"),
    };
    let node = node::start(Way::Pure, &programs, &kept, &places, &mut processes).unwrap();
    let terms = Terms::read(&counts).unwrap();
    let report = profile(&node, &programs.agent, &terms, Load::Heavy, PROFILED).unwrap();
    let (proposed, calls) = report.proposed().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(proposed.function().name, HOT, "{report}");
    // Document 002 has about 70 % (section 3.2.1), of other queries.
    assert!(proposed.share.of_all > 0.3, "{report}");
    let pool = &report.candidates[0];
    let pool = pool.calls.as_ref().unwrap();
    assert!(
        pool.count() > 2 * calls.count(),
        "other work, too: {report}"
    );
}

fn counts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/cloudsuite_term_counts.csv")
}

#[test]
fn every_search_of_a_shard_is_told_to_the_governor_and_no_core_stays_fast() {
    let folder = tempfile::tempdir().unwrap();
    let mut processes = Processes::new(folder.path().join("logs")).unwrap();
    let Some((programs, binaries)) = programs() else {
        return;
    };
    let counts = counts();
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
    let governor = governor::start(
        &binaries.join("weir-governor"),
        &folder.path().join("governor"),
        &places.events,
    )
    .unwrap();
    let way = Way::Scheduled;
    let mut watch = Watch::over(&places.events).unwrap();
    let node = node::start(way, &programs, &kept, &places, &mut processes).unwrap();
    assert_eq!(watch.written_and_at_rest().unwrap(), 0);

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
    let written = watch.written_and_at_rest().unwrap();
    assert_eq!(written, (QUERIES * SHARDS * 2) as u64);
    processes
        .wait_until("all events in the governor's metrics", CALM, || {
            let read = [
                "weir_governor_events_total",
                "weir_governor_events_lost_total",
            ];
            let read = read.map(|name| governor.counted(name).unwrap());
            (read.iter().sum::<u64>() == written).then_some(())
        })
        .unwrap();
    // No search runs any more, so that each core is told the frequency of an idle one.
    processes
        .wait_until("calm on all cores", CALM, || {
            let told = governor.told().unwrap();
            told.iter().all(|khz| khz == "1000000").then_some(())
        })
        .unwrap();
}
