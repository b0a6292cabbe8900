// SPDX-License-Identifier: Apache-2.0
//! What holds of every source.

use weir_fleet::prometheus::{Answers, Figure};

use super::*;

/// The setting with which a cluster asks it.
fn setting(source: Source) -> &'static str {
    match source {
        Source::Scrape => "scrape: {}",
        Source::Cache => "cache: {}",
        Source::KvEvents => "kv_events: {}",
        Source::Consul | Source::ConsulRoots => "consul: {}",
        Source::Dns => "dns: { name: hosts.example, port: 1 }",
        Source::Kubernetes => "kubernetes: { service: hosts, namespace: a, port: 1 }",
        Source::Prometheus => "prometheus: {}",
    }
}

/// It is asked for the first time, of the first host where it is asked for each, and says nothing.
fn silence(source: Source, asked: Instant) -> Update {
    let (cluster, host) = (Arc::from("c"), Arc::from("127.0.0.1:1"));
    let error = PollError::new(Fault::TimedOut, "x");
    match source {
        Source::Scrape => Update::Scraped {
            cluster,
            host,
            asked,
            result: Err(error),
        },
        Source::Cache | Source::KvEvents => Update::Cached {
            cluster,
            host,
            drops: 0,
            result: Err(error),
        },
        Source::Consul | Source::ConsulRoots | Source::Dns | Source::Kubernetes => Update::Asked {
            cluster,
            source,
            result: Err(error),
        },
        Source::Prometheus => Update::Queried {
            cluster,
            asked,
            answers: Answers::from([(Figure::Queued, Err(error))]),
        },
    }
}

/// One host, and these settings.
fn text(settings: &str) -> String {
    format!("clusters: {{ c: {{ hosts: [ {{ address: \"127.0.0.1:1\" }} ], {settings} }} }}\n")
}

/// The sources that are shown of the cluster and of its host.
fn shown(owner: &mut Owner) -> Vec<&'static str> {
    let view = owner.state.view(Duration::ZERO);
    let cluster = &view.clusters["c"];
    let of_hosts = cluster.hosts.iter().flat_map(|host| host.sources.keys());
    cluster.sources.keys().chain(of_hosts).copied().collect()
}

#[test]
fn a_source_that_nobody_asks_any_more_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    for source in Source::ALL {
        let config = configured(&folder, &text(setting(source)));
        let start = Instant::now();
        let mut owner = Owner::new(&config, 7, Metrics::default(), start);
        owner.fold(silence(source, start), start);
        assert!(shown(&mut owner).contains(&source.as_str()), "{source:?}");
        let unasked = configured(&folder, &text("cache_shards: 1"));
        owner.fold(News::Configured(unasked), start);
        assert_eq!(shown(&mut owner), [""; 0], "{source:?}");
    }
}

#[test]
fn a_new_leader_waits_for_every_source_that_tells_load_and_for_no_other() {
    for source in Source::ALL {
        let waits = match source {
            Source::Scrape | Source::Prometheus => true,
            Source::Cache | Source::KvEvents => false,
            // Hosts that are still to be found are waited for, whatever else is known.
            Source::Consul | Source::ConsulRoots | Source::Dns | Source::Kubernetes => continue,
        };
        let folder = tempfile::tempdir().unwrap();
        let config = configured(&folder, &text(setting(source)));
        let start = Instant::now();
        let mut owner =
            Owner::new(&config, 7, Metrics::default(), start).of_several(HANDED_OVER_AFTER);
        let mirrored = replica::mirrored(3, "c", &[4096]);
        owner.take_role(replica::following(3), start);
        owner.fold(mirrored, start);
        owner.publish(start);
        owner.take_role(Role::Leading { index: 4 }, start);
        owner.publish(start);
        let is_built = |owner: &Owner| owner.state.clusters()["c"].built.is_some();
        assert_eq!(is_built(&owner), !waits, "{source:?}");
        owner.fold(silence(source, start), start);
        owner.publish(start);
        assert!(is_built(&owner), "{source:?} has had its say");
    }
}

/// A page of the host, which names these cores.
fn page(host: &str, millicores: Option<u32>, asked: Instant) -> Update {
    Update::Scraped {
        cluster: "c".into(),
        host: host.into(),
        asked,
        result: Ok(Scraped {
            millicores,
            ..Scraped::default()
        }),
    }
}

#[test]
fn cores_on_a_page_are_in_the_table_where_nothing_is_written_and_while_it_names_them() {
    let mut script = Script::new(3, "");
    let written = Script::text(3, "").replace(":1\" }", ":1\", capacity_millicores: 2000 }");
    script.publishes("table_bytes_per_second: 1GiB", &written);
    let said = |script: &mut Script, cores: [Option<u32>; 3]| {
        for (host, cores) in ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]
            .iter()
            .zip(cores)
        {
            let asked = script.now;
            script.fold(page(host, cores, asked));
        }
        script.pass(1000);
        let hosts = script.table();
        let capacities: Vec<_> = hosts
            .hosts()
            .iter()
            .map(|host| host.capacity_millicores)
            .collect();
        let view = script.owner.state.view(Duration::ZERO);
        let from: Vec<_> = view.clusters["c"]
            .hosts
            .iter()
            .map(|host| host.capacity_from)
            .collect();
        (capacities, from)
    };
    let (configuration, page) = ("configuration", "page");
    assert_eq!(
        said(&mut script, [Some(9000), Some(4000), Some(64_000)]),
        (vec![2000, 4000, 16_000], vec![configuration, page, page]),
        "the usual host has 4 cores, and none is believed to have more than 16"
    );
    assert_eq!(
        said(&mut script, [None, None, Some(4000)]),
        (
            vec![2000, 0, 4000],
            vec![configuration, configuration, page]
        )
    );
}
