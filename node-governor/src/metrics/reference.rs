// SPDX-License-Identifier: Apache-2.0
//! METRICS.md: every family that is written.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::registry;
use crate::book::energy::{Class, EnergyBook};
use crate::book::shares::{JobBook, PeerBook, SharesBook};
use crate::book::{Book, CoreBook, Residency, Shared, ZoneBook};
use crate::cores::{Ceilings, Limits};
use crate::sensed::{Bandwidth, Nanos, Resources, Row, Tail};

thread_local! {
    static ASKED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// Notes that a family would be written, though it may have no series.
pub(super) fn asked(name: &str) {
    ASKED.with_borrow_mut(|asked| asked.insert(name.to_owned()));
}

/// A book in which nothing is absent. Labels have values where these are always the same.
fn full() -> Book {
    let job = JobBook {
        cpu: Some(Duration::ZERO),
        code: Some(0),
        limits: Limits {
            memory: Some(0),
            disk: Some(0),
        },
        ..JobBook::default()
    };
    let core = CoreBook {
        residency: vec![Residency {
            rung: 0,
            khz: crate::frequency::Khz(0),
            time: Duration::ZERO,
        }],
        status: crate::apply::Status {
            khz: Some(crate::frequency::Khz(0)),
            ..Default::default()
        },
        ..CoreBook::default()
    };
    Book {
        cores: vec![core],
        zones: vec![ZoneBook::default()],
        energy: EnergyBook {
            classes: vec![Class::default()],
            ledger: crate::energy::Ledger {
                steps: vec![(crate::frequency::Khz(0), [1.0; crate::energy::PARTS])],
            },
            good: [1; crate::sensed::FUNCTIONS],
            ..EnergyBook::default()
        },
        ticked: Some(SystemTime::UNIX_EPOCH),
        tail: Some(Tail {
            latency: Duration::ZERO,
            requests: 0,
            at: Nanos::default(),
        }),
        mesh_connected: Some(true),
        shares: Some(SharesBook {
            cpu: Some(0.0),
            resources: Resources {
                egress: Some(0.0),
                watts: Some(0.0),
                slowest: Some(crate::frequency::Khz(0)),
                memory: Some(Bandwidth::default()),
            },
            ceilings: Ceilings {
                egress: Some(0),
                speed: Some(0.0),
                ways: Some(0),
                bandwidth: Some(0),
            },
            capacity_millicores: Some(0),
            row: Some(Row {
                at: Nanos::default(),
                refuses: false,
                delay: Some(Duration::ZERO),
            }),
            others: vec![(String::new(), crate::cores::Cores::NONE)],
            jobs: vec![job],
            peers: vec![PeerBook {
                jobs: vec![(String::new(), Some(true))],
                ..PeerBook::default()
            }],
            ..SharesBook::default()
        }),
        ..Book::default()
    }
}

#[test]
fn reference_of_metrics_is_of_this_code() {
    let mut page = String::new();
    let registry = registry(Shared::new(full()));
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    for name in ASKED.take() {
        let family = format!("# HELP weir_governor_{name} ");
        assert!(page.contains(&family), "{name} has no series in this book");
    }
    let head = weir_reference::head("Metrics of weir-governor", "its registry");
    let notes = "
Served at `admin.listen` as `/metrics`. `weir_governor_capacity_cores`, `weir_governor_core_write_errors_total` and the families `weir_governor_job…`, `weir_governor_memory_bandwidth_…`, `weir_governor_mesh_…`, `weir_governor_network_…`, `weir_governor_peer_…` and `weir_governor_service_…` are there where cores are divided, `weir_governor_mesh_connected` where `mesh` is configured; a family without series is absent.
";
    let page = head + notes + &weir_reference::metrics(&page);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    weir_reference::hold(&folder.join("METRICS.md"), &page);
}
