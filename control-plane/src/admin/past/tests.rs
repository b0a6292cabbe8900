// SPDX-License-Identifier: Apache-2.0
use weir_fleet::view::MemoryView;
use weir_fleet::view::glance::{ClusterGlance, SidecarsGlance, Totals};

use super::*;

fn host(address: String, in_progress: Option<u32>) -> HostGlance {
    HostGlance {
        host: address,
        zone: None,
        state: "up",
        in_progress,
        queued: in_progress.map(|_| 70_000),
        delay_ms: in_progress.map(|_| 1.6),
        level: in_progress.map(|_| 2048),
        age_ms: None,
        stale: false,
        from: None,
        millicores: 0,
        keys: 0,
        trouble: None,
    }
}

fn glance(hosts: Vec<HostGlance>) -> Glance {
    let cluster = ClusterGlance {
        overload: String::new(),
        selection: String::new(),
        table_age_ms: None,
        version: None,
        stale_after_ms: 0,
        total: Totals {
            hosts: hosts.len(),
            ..Totals::default()
        },
        panics: false,
        health_ignored: false,
        choices_ignored: 0,
        cache_contents_dropped: false,
        trouble: vec![],
        hosts,
    };
    Glance {
        unready: None,
        configuration_refused: None,
        replica: None,
        memory: MemoryView {
            limit_bytes: None,
            counted_bytes: 0,
        },
        in_flight: 0,
        clusters: [("rules".to_owned(), cluster)].into(),
        sidecars: SidecarsGlance {
            weir: 0,
            envoy: 0,
            refusing: 0,
            reporting: 0,
            rows: vec![],
            refusals: vec![],
            reports_refused: vec![],
        },
    }
}

fn shed(shed: u64) -> BTreeMap<String, Traffic> {
    let traffic = Traffic {
        shed: [(0, shed)].into(),
        ..Traffic::default()
    };
    [("rules".to_owned(), traffic)].into()
}

fn page(past: &mut Past) -> serde_json::Value {
    serde_json::from_slice(&past.json()).unwrap()
}

#[test]
fn a_row_has_a_figure_for_each_moment_and_what_is_not_known_is_less_than_nothing() {
    let mut past = Past::default();
    past.record(&glance(vec![host("a".into(), None)]), &shed(5), 1000);
    past.record(&glance(vec![]), &shed(7), 6000);
    past.record(&glance(vec![host("a".into(), Some(3))]), &shed(7), 11000);
    let expected = serde_json::json!({
        "every_ms": 5000,
        "unix_ms": [1000, 6000, 11000],
        "hosts": [{
            "cluster": "rules", "host": "a",
            "in_progress": [-1, -1, 3], "queued": [-1, -1, 65534], "delay_ms": [-1, -1, 2],
            "level": [4096, 0, 2048], "state": "u-u",
        }],
        "clusters": [{ "cluster": "rules", "offered": [0, 0, 0], "shed": [0, 2, 0] }],
        "left_out": 0,
    });
    assert_eq!(page(&mut past), expected);
}

#[test]
fn rows_end_at_fifteen_minutes_and_hosts_that_went_before_with_them() {
    let mut past = Past::default();
    past.record(&glance(vec![host("gone".into(), Some(1))]), &shed(0), 0);
    for row in 1..=2 * ROWS as u64 {
        let kept = host("kept".into(), Some(row as u32));
        past.record(&glance(vec![kept]), &shed(0), row);
    }
    let page = page(&mut past);
    assert_eq!(page["unix_ms"].as_array().unwrap().len(), ROWS);
    assert_eq!(page["hosts"].as_array().unwrap().len(), 1);
    let jobs = page["hosts"][0]["in_progress"].as_array().unwrap();
    assert_eq!(
        (jobs.len(), &jobs[0], &jobs[ROWS - 1]),
        (ROWS, &181.into(), &360.into())
    );
}

#[test]
fn hosts_beyond_the_limit_are_left_out_and_counted_and_take_the_places_of_those_that_went() {
    let named = |from: usize, many: usize| {
        let hosts = (from..from + many).map(|it| host(format!("{it:06}"), Some(1)));
        glance(hosts.collect())
    };
    let mut past = Past::default();
    past.record(&named(0, MOST_HOSTS + 3), &shed(0), 0);
    assert_eq!((past.hosts.len(), past.left_out), (MOST_HOSTS, 3));
    past.record(&named(0, 5), &shed(0), 1);
    // All the others come at once: those that went two rows ago give way.
    past.record(&named(10_000, MOST_HOSTS), &shed(0), 2);
    past.record(&named(10_000, MOST_HOSTS), &shed(0), 3);
    assert_eq!((past.hosts.len(), past.left_out), (MOST_HOSTS, 0));
    assert!(size_of::<Point>() == 8 && page(&mut past).to_string().len() < 5 << 20);
}

#[test]
fn of_many_clusters_the_first_are_counted() {
    let named = (0..2 * MOST_CLUSTERS).map(|it| (format!("{it:03}"), Traffic::default()));
    let mut past = Past::default();
    past.record(&glance(vec![]), &named.collect(), 0);
    assert_eq!(past.clusters.len(), MOST_CLUSTERS);
}
