// SPDX-License-Identifier: Apache-2.0
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use weir_policy::Salt;

use weir_fleet::prometheus::Figure;
use weir_policy::{HostId, KeyHash, Policy, Serves};

use super::replicas::{Lease, Lock};
use super::*;

/// What `load` says of a configuration, with hosts.yaml beside it.
fn said(text: &str, hosts: &str) -> Result<Arc<Config>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, text).unwrap();
    std::fs::write(folder.path().join("hosts.yaml"), hosts).unwrap();
    let said = load(&path)
        .map(|loaded| loaded.config)
        .map_err(|(error, _)| error.to_string());
    said.map_err(|error| error.replace(&format!("{}/", folder.path().display()), ""))
}

#[test]
fn every_refusal_names_file_line_field_and_reason() {
    let cases = [
        (
            "clusters:\n  r:\n    bogus: 1\n",
            "c.yaml:3: unknown field `bogus`, expected one of policy, dagor, cache_shards, hosts, hosts_file, shrink_after, keys, caching_plan, planner, scrape, cache, kv_events, consul, dns, kubernetes, prometheus",
        ),
        (
            "clusters:\n  r:\n    hosts: 12\n",
            "c.yaml:3: hosts: expected sequence start",
        ),
        (
            "clusters:\n  r: {}\n  r: {}\n",
            "c.yaml:3: duplicate mapping key: r",
        ),
        (
            "",
            "c.yaml:1: clusters: names no cluster; at least one is needed, or policies",
        ),
        (
            "clusters:\n  r:\n    policy:\n      overload: foo\n",
            "c.yaml:4: clusters.r.policy.overload: \"foo\" is unknown; one of none, breaker, dynamic_breaker, dagor, breakwater, slots",
        ),
        (
            "clusters:\n  r: { policy: { selection: best } }\n",
            "c.yaml:2: clusters.r.policy.selection: \"best\" is unknown; one of baseline, random, rendezvous, dynamic, estimate, hot_cold, caching_plan",
        ),
        (
            "clusters:\n  r: { policy: { ranked_hosts: 9 } }\n",
            "c.yaml:2: clusters.r.policy.ranked_hosts: 9 is not in 1 to 8",
        ),
        (
            "clusters:\n  r: { policy: { selection: dynamic, crossing: 5ms } }\n",
            "c.yaml:2: clusters.r.policy.crossing: only the selection estimate goes by zones; choose it, or leave this out",
        ),
        (
            "clusters:\n  r: {}\n",
            "c.yaml:2: clusters.r.hosts: nothing names hosts of this cluster: write hosts, hosts_file, consul, dns or kubernetes",
        ),
        (
            "clusters:\n  r: { scrape: {}, hosts: [] }\n",
            "c.yaml:2: clusters.r.hosts: nothing names hosts of this cluster: write hosts, hosts_file, consul, dns or kubernetes",
        ),
        (
            "clusters:\n  r: { shrink_after: 25h }\n",
            "c.yaml:2: clusters.r.shrink_after: 25h is not in 0s to 86400s",
        ),
        (
            "clusters:\n  r: { policy: { panic_threshold: 101 } }\n",
            "c.yaml:2: clusters.r.policy.panic_threshold: 101 is not in 0 to 100",
        ),
        (
            "clusters:\n  r: { policy: { stale_after: 5 } }\n",
            "c.yaml:2: clusters.r.policy.stale_after: \"5\" is not a duration; write a number and us, ms, s, m or h, as in 500ms",
        ),
        (
            "clusters:\n  r: { policy: { retry_after: 500ms } }\n",
            "c.yaml:2: clusters.r.policy.retry_after: 500ms is not in 1s to 3600s",
        ),
        (
            "clusters:\n  r: { policy: { holding: { for_eligible: 61s } } }\n",
            "c.yaml:2: clusters.r.policy.holding.for_eligible: 61s is not in 0s to 60s",
        ),
        (
            "clusters:\n  r: { policy: { hedging: { idle_percent: 101 } } }\n",
            "c.yaml:2: clusters.r.policy.hedging.idle_percent: 101 is not in 0 to 100",
        ),
        (
            "clusters:\n  r: { dagor: { alpha: 0.9 } }\n",
            "c.yaml:2: clusters.r.dagor.alpha: 0.9 is not in 0.001 to 0.5",
        ),
        (
            "clusters:\n  r: { dagor: { alpha: NaN } }\n",
            "c.yaml:2: clusters.r.dagor.alpha: NaN is not in 0.001 to 0.5",
        ),
        (
            "clusters:\n  r: { dagor: { control: best } }\n",
            "c.yaml:2: clusters.r.dagor.control: \"best\" is unknown; one of steady, paper, stalled_jobs",
        ),
        (
            "clusters:\n  r: { dagor: { target: 2s, high: 1s } }\n",
            "c.yaml:2: clusters.r.dagor.high: 1s is not above the target, 2s",
        ),
        (
            "clusters:\n  r: { dagor: { low: 2s } }\n",
            "c.yaml:2: clusters.r.dagor.low: 2s is not below the target, 2s",
        ),
        (
            "clusters:\n  r: { policy: { dynamic_breaker_least_queued_jobs: 101 } }\n",
            "c.yaml:2: clusters.r.policy.dynamic_breaker_least_queued_jobs: 101 is more than breaker_queued_jobs, 100",
        ),
        (
            "clusters:\n  r: { policy: { dynamic_breaker_wait: 0s } }\n",
            "c.yaml:2: clusters.r.policy.dynamic_breaker_wait: 0s is not in 1ms to 3600s",
        ),
        (
            "clusters:\n  r: { cache_shards: 12 }\n",
            "c.yaml:2: clusters.r.cache_shards: 12 is not 0 or a power of two",
        ),
        (
            "clusters:\n  r:\n    hosts:\n    - address: 127.0.0.1:1\n    - { address: \"127.0.0.1:1\" }\n",
            "c.yaml:5: clusters.r.hosts[1].address: 127.0.0.1:1 is already a host of this cluster (c.yaml:4)",
        ),
        (
            "clusters:\n  r:\n    hosts: [ { address: localhost:1 } ]\n",
            "c.yaml:3: clusters.r.hosts[0].address: \"localhost:1\" is not ip:port",
        ),
        (
            "clusters:\n  r:\n    hosts: [ { address: \"127.0.0.1:0\" } ]\n",
            "c.yaml:3: clusters.r.hosts[0].address: port 0 is no port",
        ),
        (
            "clusters:\n  r:\n    hosts: [ { address: \"[0:0::1]:80\" } ]\n",
            "c.yaml:3: clusters.r.hosts[0].address: \"[0:0::1]:80\" has to be written \"[::1]:80\"",
        ),
        (
            "clusters:\n  r:\n    hosts: [ { draining: true } ]\n",
            "c.yaml:3: clusters.r.hosts[0].address: required; ip:port",
        ),
        (
            "clusters:\n  r: { scrape: { path: metrics } }\n",
            "c.yaml:2: clusters.r.scrape.path: \"metrics\" is not the path of a URL, as in /metrics",
        ),
        (
            "clusters:\n  r: { scrape: { metrics: { engine: vlm } } }\n",
            "c.yaml:2: clusters.r.scrape.metrics.engine: \"vlm\" is unknown; one of weir, vllm, sglang, trtllm, triton",
        ),
        (
            "clusters:\n  r: { scrape: { metrics: { running: a, in_progress: b } } }\n",
            "c.yaml:2: clusters.r.scrape.metrics.in_progress: is the sum of running and queued where running is written: write one of them",
        ),
        (
            "clusters:\n  r: { scrape: { metrics: { queued: a-b } } }\n",
            "c.yaml:2: clusters.r.scrape.metrics.queued: \"a-b\" is not a Prometheus metric, as in name or name{label=\"value\"}",
        ),
        (
            "clusters:\n  r: { cache: { max_bytes: 16 } }\n",
            "c.yaml:2: clusters.r.cache.max_bytes: \"16\" is not a size; write a number and B, KiB, MiB, GiB, kB, MB or GB, as in 4MiB",
        ),
        (
            "clusters:\n  r:\n    prometheus:\n      adress: x\n",
            "c.yaml:4: unknown field `adress`, expected one of address, ca, certificate, key, interval, timeout, label, queries",
        ),
        (
            "clusters:\n  r:\n    prometheus: { address: \"prometheus:9090\" }\n",
            "c.yaml:3: clusters.r.prometheus.address: \"prometheus:9090\" is not http://host:port or https://host:port, with or without a path",
        ),
        (
            "clusters:\n  r: { prometheus: { address: \"http://u:p@x/\" } }\n",
            "c.yaml:2: clusters.r.prometheus.address: has a user or a password in it (@), which is not read; see the fields for tokens and certificates",
        ),
        (
            "clusters:\n  r: { prometheus: { address: \"http://x/?a=b\" } }\n",
            "c.yaml:2: clusters.r.prometheus.address: \"http://x/?a=b\" is not http://host:port or https://host:port, with or without a path",
        ),
        (
            "clusters:\n  r: { prometheus: { interval: 10ms } }\n",
            "c.yaml:2: clusters.r.prometheus.interval: 10ms is not in 100ms to 3600s",
        ),
        (
            "clusters:\n  r: { prometheus: { timeout: 2m } }\n",
            "c.yaml:2: clusters.r.prometheus.timeout: 2m is not in 1ms to 60s",
        ),
        (
            "clusters:\n  r: { prometheus: { label: a-b } }\n",
            "c.yaml:2: clusters.r.prometheus.label: \"a-b\" is not the name of a Prometheus label",
        ),
        (
            "clusters:\n  r: { prometheus: { ca: hosts.yaml } }\n",
            "c.yaml:2: clusters.r.prometheus.ca: hosts.yaml has no CERTIFICATE in PEM",
        ),
        (
            "clusters:\n  r: { prometheus: { address: \"https://x\", key: none.pem } }\n",
            "c.yaml:2: clusters.r.prometheus.key: cannot read none.pem: No such file or directory (os error 2)",
        ),
        (
            "clusters:\n  r:\n    prometheus:\n      queries: { in_progress: \"\", queued: \" \" }\n",
            "c.yaml:4: clusters.r.prometheus.queries.in_progress: empty as queued is: without both nothing is known of the load",
        ),
        (
            "clusters:\n  r: { scrape: {}, prometheus: { queries: { queued: \"\" } } }\n",
            "c.yaml:2: clusters.r.prometheus.queries.queued: required beside scrape: the newest figures count, and half of the load would be known by turns",
        ),
        (
            "clusters:\n  r:\n    hosts: [ { address: \"127.0.0.1:1\", metrics_address: \"127.0.0.1:3\" }, { address: \"127.0.0.1:3\" } ]\n    prometheus: {}\n",
            "c.yaml:4: clusters.r.prometheus.label: instance=\"127.0.0.1:3\" would name two hosts, 127.0.0.1:1 and 127.0.0.1:3, by address or metrics_address",
        ),
        (
            "xds: { listen: \"0.0.0.0:1\" }\nclusters: { r: { hosts: [ { address: 127.0.0.1:9 } ] } }\n",
            "c.yaml:1: xds.listen: not loopback: xds.tls is required, or plaintext: true if the network is protected by other means",
        ),
        (
            "xds: { tls: { certificate: none.pem } }\nclusters: { r: { hosts: [ { address: 127.0.0.1:9 } ] } }\n",
            "c.yaml:1: xds.tls.certificate: cannot read none.pem: No such file or directory (os error 2)",
        ),
        (
            "xds: { tls: { certificate: hosts.yaml } }\nclusters: { r: { hosts: [ { address: 127.0.0.1:9 } ] } }\n",
            "c.yaml:1: xds.tls.certificate: hosts.yaml has no CERTIFICATE in PEM",
        ),
        (
            "admin: { listen: \"0.0.0.0:1\" }\nclusters: { r: { hosts: [ { address: 127.0.0.1:9 } ] } }\n",
            "c.yaml:1: admin.listen: not loopback, and admin has no TLS; write plaintext: true if anyone who reaches it may read it",
        ),
        (
            "clusters:\n  r: { policy: { selection: hot_cold, hot_cold_quantile: 84 } }\n",
            "c.yaml:2: clusters.r.policy.hot_cold_quantile: 84 is not in 0 to 1",
        ),
        (
            "clusters:\n  r: { policy: { selection: caching_plan } }\n",
            "c.yaml:2: clusters.r.caching_plan: required with policy.selection caching_plan: the name of a CSV file; or write planner, which learns it",
        ),
        (
            "clusters:\n  r: { planner: {} }\n",
            "c.yaml:2: clusters.r.planner: only policy.selection caching_plan reads it",
        ),
        (
            "clusters:\n  r: { policy: { selection: caching_plan }, cache: {}, planner: {} }\n",
            "c.yaml:2: clusters.r.planner: a plan and what caches say exclude each other; leave out cache",
        ),
        (
            "clusters:\n  r: { policy: { selection: caching_plan }, planner: { moved_per_minute: 2 } }\n",
            "c.yaml:2: clusters.r.planner.moved_per_minute: 2 is not in 0 to 1",
        ),
        (
            "clusters:\n  r: { policy: { selection: caching_plan }, planner: {}, caching_plan: plan.csv }\n",
            "c.yaml:2: clusters.r.caching_plan: a plan that is written and one that is learned exclude each other; leave out planner",
        ),
        (
            "clusters:\n  r: { cache: {}, kv_events: {} }\n",
            "c.yaml:2: clusters.r.kv_events: hosts are asked by cache, or listened to by kv_events: leave one of them out",
        ),
        (
            "clusters:\n  r: { cache_shards: 0, kv_events: {} }\n",
            "c.yaml:2: clusters.r.kv_events: what hosts hold is pushed as cache contents; cache_shards must not be 0",
        ),
        (
            "clusters:\n  r: { kv_events: { replay_port: 5557 } }\n",
            "c.yaml:2: clusters.r.kv_events.replay_port: 5557 is the port where the host publishes",
        ),
        (
            "clusters:\n  r: { kv_events: { block_bytes: 63 } }\n",
            "c.yaml:2: clusters.r.kv_events.block_bytes: 63 is not in 64 to 65536",
        ),
        (
            "clusters:\n  r: { kv_events: { template: chatml } }\n",
            "c.yaml:2: clusters.r.kv_events.template: needs a tokenizer: without one blocks are named by their hashes",
        ),
        (
            "clusters:\n  r: { kv_events: { model: m, tokenizer: none.json } }\n",
            "c.yaml:2: clusters.r.kv_events.tokenizer: cannot read none.json: No such file or directory (os error 2)",
        ),
        (
            "clusters:\n  r: { kv_events: { model: m, tokenizer: hosts.yaml } }\n",
            "c.yaml:2: clusters.r.kv_events.tokenizer: hosts.yaml is no tokenizer.json: EOF while parsing a value at line 1 column 0",
        ),
        (
            "clusters:\n  r: { kv_events: { base_port: 0 } }\n",
            "c.yaml:2: clusters.r.kv_events.base_port: 0 is not in 1 to 65535",
        ),
        (
            "clusters:\n  r: { kv_events: { tokenizer_config: hosts.yaml } }\n",
            "c.yaml:2: clusters.r.kv_events.tokenizer_config: needs a tokenizer: it tells which of its tokens is the first",
        ),
        (
            "clusters:\n  r: { policy: { selection: caching_plan }, kv_events: {}, caching_plan: plan.csv }\n",
            "c.yaml:2: clusters.r.caching_plan: a plan and what caches say exclude each other; leave out kv_events",
        ),
        (
            "clusters:\n  r: { caching_plan: plan.csv }\n",
            "c.yaml:2: clusters.r.caching_plan: only policy.selection caching_plan reads it",
        ),
        (
            "clusters:\n  r: { policy: { selection: caching_plan }, cache: {}, caching_plan: plan.csv }\n",
            "c.yaml:2: clusters.r.caching_plan: a plan and what caches say exclude each other; leave out cache",
        ),
        (
            "clusters:\n  r: { policy: { selection: caching_plan }, cache_shards: 0, caching_plan: plan.csv }\n",
            "c.yaml:2: clusters.r.caching_plan: the plan is pushed as cache contents; cache_shards must not be 0",
        ),
        (
            "clusters:\n  r: { policy: { selection: caching_plan }, caching_plan: plan.csv }\n",
            "c.yaml:2: clusters.r.caching_plan: cannot read plan.csv: No such file or directory (os error 2)",
        ),
        (
            "clusters:\n  r: { hosts_file: /dev/zero }\n",
            "/dev/zero: cannot read: not a regular file, which can be read again when it changes",
        ),
        (
            "clusters:\n  r: { hosts_file: none.yaml }\n",
            "none.yaml: cannot read: No such file or directory (os error 2)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(said(text, "").unwrap_err(), expected, "{text}");
    }
}

#[test]
fn a_hosts_file_is_checked_as_a_whole_and_against_the_hosts_beside_it() {
    let main = "clusters:\n  r:\n    hosts: [ { address: \"127.0.0.1:2\" } ]\n    hosts_file: hosts.yaml\n";
    let config = said(main, "- address: 127.0.0.1:3\n- { address: \"127.0.0.1:1\", draining: true, capacity_millicores: 500 }\n").unwrap();
    let hosts: Vec<&str> = config.clusters["r"]
        .hosts
        .iter()
        .map(|host| host.address.as_str())
        .collect();
    assert_eq!(hosts, ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]);
    assert!(config.clusters["r"].hosts[0].draining);
    for (hosts, expected) in [
        (
            "- address: 127.0.0.1:3\n- address: 127.0.0.1:2\n",
            "hosts.yaml:2: hosts[1].address: 127.0.0.1:2 is already a host of this cluster (c.yaml:3)",
        ),
        (
            "- address: 127.0.0.1:3\n- addres: 127.0.0.1:2\n",
            "hosts.yaml:2: unknown field `addres`, expected one of address, metrics_address, cache_address, capacity_millicores, preempt_at_unix_ms, zone, draining",
        ),
    ] {
        assert_eq!(said(main, hosts).unwrap_err(), expected);
    }
}

#[test]
fn a_caching_plan_is_keys_by_host_or_refused_with_line_field_and_reason() {
    let main = "clusters:\n  r:\n    hosts: [ { address: \"127.0.0.1:2\" } ]\n    policy: { selection: caching_plan }\n    caching_plan: hosts.yaml\n";
    let config = said(main, "key,address\na,127.0.0.1:2\r\nb,c,127.0.0.1:2\n").unwrap();
    let planned = ["a", "b,c"].map(|key| KeyHash::of(key.as_bytes())).to_vec();
    let plan = Plan::from([(HostId::of("127.0.0.1:2"), planned)]);
    assert_eq!(config.clusters["r"].plan, Some(plan));
    for (plan, expected) in [
        ("", "hosts.yaml:1: the first line must be key,address"),
        ("key,address\n", "hosts.yaml:1: plans no key"),
        (
            "key,address\na\n",
            "hosts.yaml:2: not a key, a comma and an address: \"a\"",
        ),
        ("key,address\n,127.0.0.1:2\n", "hosts.yaml:2: key: empty"),
        (
            "key,address\na,127.0.0.1:2\na,127.0.0.1:3\n",
            "hosts.yaml:3: address: \"127.0.0.1:3\" is no host of this cluster",
        ),
        (
            "key,address\na,127.0.0.1:2\na,127.0.0.1:2\n",
            "hosts.yaml:3: key: \"a\" is at 127.0.0.1:2 already",
        ),
    ] {
        assert_eq!(said(main, plan).unwrap_err(), expected);
    }
}

#[test]
fn a_salt_is_32_hexadecimal_digits_and_is_not_repeated_in_an_error() {
    let main = "clusters:\n  r:\n    hosts: [ { address: \"127.0.0.1:2\" } ]\n    keys: { salt_file: hosts.yaml }\n    cache: {}\n";
    let text = "000102030405060708090A0b0c0d0e0f";
    let config = said(main, &format!("{text}\n")).unwrap();
    let cluster = &config.clusters["r"];
    let salt = Salt::parse(text);
    assert_eq!(cluster.salt, salt);
    assert_eq!(cluster.cache.as_ref().unwrap().salt, salt);
    assert_eq!(cluster.policy.salt_check, salt.map(|salt| salt.check()));
    for salt in ["", "00", &format!("{text}0"), &text.replace('A', "g")] {
        assert_eq!(
            said(main, salt).unwrap_err(),
            "c.yaml:4: clusters.r.keys.salt_file: hosts.yaml does not have 32 hexadecimal digits, as `openssl rand -hex 16` prints them"
        );
    }
    let other = main.replace("hosts.yaml", "none");
    assert_eq!(
        said(&other, "").unwrap_err(),
        "c.yaml:4: clusters.r.keys.salt_file: cannot read none: No such file or directory (os error 2)"
    );
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let text = "clusters: { r: { hosts_file: hosts.yaml, scrape: {}, cache: {} } }\n";
    let config = said(text, "").unwrap();
    assert_eq!(
        (config.xds.listen.to_string(), config.admin.to_string()),
        ("127.0.0.1:18000".into(), "127.0.0.1:19000".into())
    );
    let cluster = &config.clusters["r"];
    assert_eq!(cluster.policy, Policy::default());
    assert_eq!(cluster.policy.panic_threshold, 50);
    let credits = "clusters: { r: { hosts_file: hosts.yaml, policy: { overload: breakwater } } }\n";
    let holding = said(credits, "").unwrap().clusters["r"].policy.holding;
    let holds = (holding.for_eligible, holding.for_cached);
    assert_eq!(holds, (Duration::from_secs(10), Duration::from_secs(10)));
    assert_eq!(cluster.shrink_after, Duration::from_secs(30));
    assert_eq!(
        (cluster.cache_shards, cluster.dagor.window_requests),
        (16, 2000)
    );
    let scrape = cluster.scrape.as_ref().unwrap();
    assert_eq!(
        (scrape.poll.interval, scrape.poll.timeout),
        (Duration::from_secs(1), Duration::from_millis(500))
    );
    assert_eq!(cluster.cache.as_ref().unwrap().max_keys, 1_000_000);
    assert!(
        said("clusters: { r: { hosts_file: hosts.yaml, scrape: } }\n", "")
            .unwrap()
            .clusters["r"]
            .scrape
            .is_none()
    );
}

#[test]
fn discovery_has_room_for_two_streams_of_each_proxy_unless_something_else_is_written() {
    const CLUSTER: &str = "clusters: { r: { consul: {} } }\n";
    let limits = |text: &str| said(&format!("{text}{CLUSTER}"), "").map(|config| config.discovery);
    assert_eq!(limits("").unwrap(), DiscoveryLimits::for_proxies(10_000));
    let many = limits("reports: { max_proxies: 30000 }\n").unwrap();
    assert_eq!(many.max_streams, 60_000);
    let written = "discovery: { max_streams: 5, max_streams_per_proxy: 2, max_stream_bytes: 1KiB, max_bytes: 1MiB }\n";
    let expected = DiscoveryLimits {
        max_streams: 5,
        max_streams_per_proxy: 2,
        max_stream_bytes: 1 << 10,
        max_bytes: 1 << 20,
    };
    assert_eq!(limits(written).unwrap(), expected);
    for (wrong, field) in [
        ("max_streams: 0", "discovery.max_streams"),
        (
            "max_streams_per_proxy: 1",
            "discovery.max_streams_per_proxy",
        ),
        ("max_stream_bytes: 1B", "discovery.max_stream_bytes"),
        ("max_bytes: 1KiB", "discovery.max_bytes"),
        ("max_names: 1", "max_names"),
    ] {
        let error = limits(&format!("discovery: {{ {wrong} }}\n")).unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
}

#[test]
fn prometheus_is_asked_for_what_weirs_hosts_tell_unless_something_else_is_written() {
    let text = "clusters: { r: { hosts_file: hosts.yaml, prometheus: { address: \"http://p:9090/x/\", label: pod, queries: { work: \"\", queued: \" q \" } } } }\n";
    let config = said(text, "").unwrap();
    let prometheus = config.clusters["r"].prometheus.as_ref().unwrap();
    assert_eq!(prometheus.server.url, "http://p:9090/x");
    assert_eq!(
        (prometheus.interval, prometheus.timeout),
        (Duration::from_secs(1), Duration::from_millis(500))
    );
    let query = |figure| prometheus.queries.get(&figure).map(String::as_str);
    assert_eq!(query(Figure::InProgress), Some("weir_host_in_progress"));
    assert_eq!(query(Figure::Queued), Some("q"));
    assert_eq!(query(Figure::Work), None);
    assert!(query(Figure::QueuingDelay).unwrap().contains("by (pod)"));
    assert_eq!(
        query(Figure::Age),
        Some("time() - timestamp(weir_host_in_progress)")
    );
}

#[test]
fn the_files_that_were_read_come_back_for_the_watcher_even_if_they_are_bad() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, "clusters: { r: { hosts_file: h.yaml } }").unwrap();
    let (_, files) = load(&path).unwrap_err();
    assert_eq!(files.len(), 2);
    assert!(!files[&folder.path().join("h.yaml")].was_read());
    let (files, news) = crate::sources::file::look(&path, files);
    assert!(news.is_none(), "nothing has changed");
    std::fs::write(folder.path().join("h.yaml"), "- address: 127.0.0.1:1\n").unwrap();
    let (files, news) = crate::sources::file::look(&path, files);
    assert_eq!(news.unwrap().unwrap().clusters["r"].hosts.len(), 1);
    std::fs::write(folder.path().join("h.yaml"), "- address: x\n").unwrap();
    assert!(crate::sources::file::look(&path, files).1.unwrap().is_err());
}

#[test]
fn replicas_are_checked_before_a_port_is_bound() {
    let check = |fields: &str| {
        let text = format!(
            "replicas: {fields}\nclusters: {{ r: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n"
        );
        let config = said(&text, "");
        config.map(|config| Replicas::clone(config.replicas.as_ref().unwrap()))
    };
    let good = check("{ address: \"10.0.0.5:9901\", name: a }").unwrap();
    assert_eq!((good.name.as_str(), good.tls), ("a", None));
    let Lock::Consul(lock) = good.lock else {
        panic!("another lock")
    };
    assert_eq!(lock.consul.url, "http://127.0.0.1:8500");
    assert_eq!(lock.key, "weir/leader");
    assert_eq!(lock.ttl, Duration::from_secs(10));
    assert!(lock.token.is_none());
    let good = check("{ address: \"a:1\", lease: { namespace: weir-system } }").unwrap();
    let lease = Lease {
        namespace: "weir-system".to_owned(),
        name: "weir-control".to_owned(),
        duration: Duration::from_secs(15),
        access: Access::Pod,
    };
    assert_eq!(good.lock, Lock::Lease(lease));
    assert!(
        !check("{ address: \"a:1\" }").unwrap().name.is_empty(),
        "the host's"
    );
    for (fields, expected) in [
        (
            "{}",
            "replicas.address: required; host:port where the other replicas reach xds.listen",
        ),
        ("{ address: a }", "replicas.address: \"a\" is not host:port"),
        (
            "{ address: \"http://a:1\" }",
            "replicas.address: \"http://a:1\" is not host:port",
        ),
        (
            "{ address: \"a:1\", session_ttl: 9s }",
            "replicas.session_ttl: 9s is not in 10s to 86400s",
        ),
        (
            "{ address: \"a:1\", key: /weir }",
            "replicas.key: \"/weir\" is not the name of a key, of 1 to 512 bytes, without spaces and not beginning with a slash",
        ),
        (
            "{ address: \"a:1\", name: a b }",
            "replicas.name: \"a b\" is not a name of 1 to 256 visible ASCII characters",
        ),
        (
            "{ address: \"a:1\", ca: ca.pem }",
            "replicas.ca: only replicas with xds.tls read it",
        ),
        (
            "{ lease: { namespace: a } }",
            "replicas.address: required; host:port where the other replicas reach xds.listen, or the environment's POD_IP",
        ),
        (
            "{ address: \"a:1\", lease: {} }",
            "replicas.lease.namespace: required; where the Lease is",
        ),
        (
            "{ address: \"a:1\", lease: { namespace: a, name: A_B } }",
            "replicas.lease.name: \"A_B\" is not a name of 1 to 63 lower-case letters, digits and hyphens",
        ),
        (
            "{ address: \"a:1\", lease: { namespace: a, duration: 4s } }",
            "replicas.lease.duration: 4s is not in 5s to 3600s",
        ),
        (
            "{ address: \"a:1\", lease: { namespace: a, duration: 5500ms } }",
            "replicas.lease.duration: 5500ms is not in whole seconds",
        ),
        (
            "{ address: \"a:1\", lease: { namespace: a }, key: weir/leader }",
            "replicas.key: only a lock in Consul has it; leave it out beside lease",
        ),
        (
            "{ address: \"a:1\", lease: { namespace: a }, consul: {} }",
            "replicas.consul: the lock is in Consul or is a lease: leave one out",
        ),
        (
            "{ address: \"a:1\", lease: { namespace: a, bogus: 1 } }",
            "unknown field `bogus`, expected one of namespace, name, duration, kubeconfig",
        ),
        (
            "{ address: \"a:1\", consul: { address: nonsense } }",
            "replicas.consul.address: \"nonsense\" is not http://host:port or https://host:port, with or without a path",
        ),
        (
            "{ address: \"a:1\", consul: { address: \"http://10.0.0.1:8500\", token_file: t } }",
            "replicas.consul.token_file: http://10.0.0.1:8500 is neither https:// nor loopback, so the token would be sent in the clear; write plaintext: true if that is meant",
        ),
    ] {
        assert_eq!(check(fields).unwrap_err(), format!("c.yaml:1: {expected}"));
    }
}

#[test]
fn tables_are_pushed_three_times_before_they_are_old() {
    let with = |interval: &str| {
        let text = format!(
            "publish: {{ interval: {interval} }}\nclusters: {{ r: {{ hosts: [ {{ address: 127.0.0.1:9 }} ], policy: {{ stale_after: 3s }} }} }}\n"
        );
        said(&text, "")
    };
    assert!(with("1s").is_ok());
    let error = with("1001ms").unwrap_err().to_string();
    assert_eq!(
        error,
        "c.yaml:1: publish.interval: 1.001s is more than a third of clusters.r.policy.stale_after, which is 3s: sidecars \
         would take its tables for old"
    );
}

#[test]
fn a_change_of_what_is_fixed_at_the_start_needs_a_restart() {
    let old = said(
        "clusters: { r: { hosts: [ { address: 127.0.0.1:9 } ] } }\n",
        "",
    )
    .unwrap();
    let file = Path::new("c.yaml");
    let new = said(
        "xds: { listen: \"127.0.0.1:1\" }\nclusters: { r: { hosts: [ { address: 127.0.0.1:9 } ] } }\n",
        "",
    )
    .unwrap();
    let of_several = |name: &str| {
        let text = format!(
            "replicas: {{ address: \"a:1\", name: {name} }}\nclusters: {{ r: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n"
        );
        said(&text, "").unwrap()
    };
    let (one, other) = (of_several("one"), of_several("other"));
    for (old, new) in [(&old, &one), (&one, &old), (&one, &other)] {
        let error = crate::sources::file::restart_needed(file, old, new).unwrap();
        assert!(
            error
                .to_string()
                .starts_with("c.yaml: replicas: restart needed: ")
        );
    }
    assert!(crate::sources::file::restart_needed(file, &one, &of_several("one")).is_none());
    let error = crate::sources::file::restart_needed(file, &old, &new).unwrap();
    assert_eq!(
        error.to_string(),
        "c.yaml: xds: restart needed: listeners do not change while weir-control runs; nothing of this file is applied"
    );
    assert!(crate::sources::file::restart_needed(file, &old, &old).is_none());
    for (text, field) in [
        ("reports: { max_proxies: 7 }", "reports.max_proxies"),
        (
            "reports: { max_waiting_bytes: 32MiB }",
            "reports.max_waiting_bytes",
        ),
        ("discovery: { max_bytes: 32MiB }", "discovery"),
        ("receipts: { file: /r }", "receipts"),
    ] {
        let text =
            format!("{text}\nclusters: {{ r: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n");
        let new = said(&text, "").unwrap();
        let error = crate::sources::file::restart_needed(file, &old, &new).unwrap();
        let begin = format!("c.yaml: {field}: restart needed: ");
        assert!(error.to_string().starts_with(&begin), "{error}");
    }
    let live = "reports: { max_rows: 1000, max_vms: 3 }\nclusters: { r: { hosts: [ { address: 127.0.0.1:9 } ] } }\n";
    let live = said(live, "").unwrap();
    assert!(crate::sources::file::restart_needed(file, &old, &live).is_none());
}

fn of_consul(config: &Config) -> Arc<Consul> {
    match &config.clusters["r"].registry {
        Some(Registry::Consul(consul)) => consul.clone(),
        other => panic!("{other:?}"),
    }
}

/// What is said of a cluster "r" whose `consul` is this.
fn consul(fields: &str, token: &str) -> Result<Arc<Consul>, String> {
    let config = said(
        &format!("clusters:\n  r: {{ consul: {{ {fields} }} }}\n"),
        token,
    )?;
    Ok(of_consul(&config))
}

#[test]
fn every_refusal_of_consul_names_field_and_reason() {
    let cases = [
        (
            "adress: x",
            "c.yaml:2: unknown field `adress`, expected one of address, ca, certificate, key, service, connect, datacenter, filter, tags, token_file, plaintext, wait, weight_millicores",
        ),
        (
            "address: \"127.0.0.1:8500\"",
            "c.yaml:2: clusters.r.consul.address: \"127.0.0.1:8500\" is not http://host:port or https://host:port, with or without a path",
        ),
        (
            "address: unix:///c",
            "c.yaml:2: clusters.r.consul.address: \"unix:///c\" is not http://host:port or https://host:port, with or without a path",
        ),
        (
            "address: \"http://u:p@c\"",
            "c.yaml:2: clusters.r.consul.address: has a user or a password in it (@), which is not read; see the fields for tokens and certificates",
        ),
        (
            "service: a b",
            "c.yaml:2: clusters.r.consul.service: \"a b\" is not a name of 1 to 128 bytes without spaces",
        ),
        (
            "connect: no",
            "c.yaml:2: clusters.r.consul.connect: \"no\" is not true or false",
        ),
        (
            "datacenter: \"\"",
            "c.yaml:2: clusters.r.consul.datacenter: \"\" is not a name of 1 to 128 bytes without spaces",
        ),
        (
            "filter: \" \"",
            "c.yaml:2: clusters.r.consul.filter: empty; leave it out",
        ),
        (
            "tags: [ a, b c ]",
            "c.yaml:2: clusters.r.consul.tags[1]: \"b c\" is not a tag of 1 to 128 bytes without spaces",
        ),
        (
            "wait: 11m",
            "c.yaml:2: clusters.r.consul.wait: 11m is not in 1s to 600s",
        ),
        (
            "weight_millicores: -1",
            "c.yaml:2: clusters.r.consul.weight_millicores: \"-1\" is not a whole number",
        ),
        (
            "token_file: none",
            "c.yaml:2: clusters.r.consul.token_file: cannot read none: No such file or directory (os error 2)",
        ),
        (
            "token_file: hosts.yaml",
            "c.yaml:2: clusters.r.consul.token_file: hosts.yaml is empty; it should have the SecretID of a token",
        ),
        (
            "address: \"https://c\", ca: hosts.yaml",
            "c.yaml:2: clusters.r.consul.ca: hosts.yaml has no CERTIFICATE in PEM",
        ),
        (
            "address: \"https://c\", key: none",
            "c.yaml:2: clusters.r.consul.key: cannot read none: No such file or directory (os error 2)",
        ),
    ];
    for (fields, expected) in cases {
        assert_eq!(consul(fields, "").unwrap_err(), expected, "{fields}");
    }
    let two = consul("token_file: hosts.yaml", "a b\n").unwrap_err();
    assert!(
        two.ends_with("hosts.yaml has more than the SecretID of one token"),
        "{two}"
    );
    let unnamed = said("clusters:\n  \"a b\": { consul: {} }\n", "").unwrap_err();
    assert_eq!(
        unnamed,
        "c.yaml:2: clusters.a b.consul.service: required: \"a b\" is the name of no service"
    );
}

#[test]
fn every_refusal_of_dns_names_field_and_reason() {
    let dns = |fields: &str| said(&format!("clusters:\n  r: {{ dns: {{ {fields} }} }}\n"), "");
    let good = dns("name: _http._tcp.rules.example.").unwrap();
    let Some(Registry::Dns(good)) = good.clusters["r"].registry.clone() else {
        panic!("{good:?}");
    };
    assert_eq!((good.port, good.server), (None, None));
    assert_eq!(good.interval, Duration::from_secs(5));
    for (fields, reason) in [
        (
            "port: 80",
            "name: required; the name whose addresses the hosts have",
        ),
        (
            "name: \"a b\"",
            "name: \"a b\" is not a name of labels of at most 63 bytes, 255 in all",
        ),
        (
            "name: .",
            "name: \".\" is not a name of labels of at most 63 bytes, 255 in all",
        ),
        ("name: r, port: 0", "port: \"0\" is no port"),
        (
            "name: r, metrics_port: 70000",
            "metrics_port: \"70000\" is no port",
        ),
        (
            "name: r, server: dns.example",
            "server: \"dns.example\" is not ip:port or [ip6]:port",
        ),
        (
            "name: r, interval: 1ms",
            "interval: 1ms is not in 100ms to 3600s",
        ),
    ] {
        let error = format!("c.yaml:2: clusters.r.dns.{reason}");
        assert_eq!(dns(fields).unwrap_err(), error);
    }
    let both = said("clusters:\n  r: { consul: {}, dns: { name: r } }\n", "").unwrap_err();
    assert_eq!(
        both,
        "c.yaml:2: clusters.r.dns: one of consul, dns and kubernetes names a cluster's hosts: leave the others out"
    );
}

/// The settings of a cluster `rules`, with this file as `hosts.yaml` beside them.
fn kubernetes(fields: &str, file: &str) -> Result<Kubernetes, String> {
    let text = format!("clusters:\n  rules: {{ kubernetes: {{ {fields} }} }}\n");
    said(&text, file).map(|config| match &config.clusters["rules"].registry {
        Some(Registry::Kubernetes(good)) => Kubernetes::clone(good),
        other => panic!("{other:?}"),
    })
}

#[test]
fn every_refusal_of_kubernetes_names_field_and_reason() {
    let good = kubernetes("namespace: shop, port: 8080", "").unwrap();
    assert_eq!(good.namespace, "shop");
    let rules = |port| Backend::Service("rules".into(), port);
    assert_eq!(good.backend, rules(ServicePort::Number(8080)));
    assert_eq!(good.access, Access::Pod);
    let named = kubernetes("namespace: shop, port: http-1, service: other", "").unwrap();
    let other = Backend::Service("other".into(), ServicePort::Named("http-1".into()));
    assert_eq!(named.backend, other);
    let pool = kubernetes("namespace: shop, inference_pool: llama", "").unwrap();
    assert_eq!(pool.backend, Backend::Pool("llama".into()));
    for (fields, reason) in [
        (
            "namespace: a, inference_pool: b, port: 80",
            "port: an InferencePool has none; leave it out, or inference_pool",
        ),
        ("port: 80", "namespace: required; where it is"),
        (
            "namespace: a/b, port: 80",
            "namespace: \"a/b\" is not a name of 1 to 63 lower-case letters, digits and hyphens",
        ),
        (
            "namespace: a, service: -b, port: 80",
            "service: \"-b\" is not a name of 1 to 63 lower-case letters, digits and hyphens",
        ),
        (
            "namespace: a",
            "port: required; where the hosts take requests",
        ),
        (
            "namespace: a, port: 0",
            "port: \"0\" is not a port's name or 1 to 65535",
        ),
        (
            "namespace: a, port: 70000",
            "port: \"70000\" is not a port's name or 1 to 65535",
        ),
        (
            "namespace: a, port: Http",
            "port: \"Http\" is not a port's name or 1 to 65535",
        ),
        (
            "namespace: a, port: 80, metrics_port: x",
            "metrics_port: \"x\" is no port",
        ),
        (
            "namespace: a, port: 80, kubeconfig: none",
            "kubeconfig: none: cannot read: No such file or directory (os error 2)",
        ),
    ] {
        let error = format!("c.yaml:2: clusters.rules.kubernetes.{reason}");
        assert_eq!(kubernetes(fields, "").unwrap_err(), error);
    }
    let both = "clusters:\n  r: { dns: { name: r }, kubernetes: { namespace: a, port: 1 } }\n";
    assert_eq!(
        said(both, "").unwrap_err(),
        "c.yaml:2: clusters.r.kubernetes: one of consul, dns and kubernetes names a cluster's hosts: leave the others out"
    );
}

/// A kubeconfig with these fields of its cluster and its user.
fn kubeconfig(cluster: &str, user: &str) -> Result<ApiServer, String> {
    let file = format!(
        "current-context: here\n\
         contexts: [ {{ name: here, context: {{ cluster: c, user: u }} }} ]\n\
         clusters: [ {{ name: c, cluster: {{ {cluster} }} }} ]\n\
         users: [ {{ name: u, user: {{ {user} }} }} ]\n"
    );
    let fields = "namespace: a, port: 80, kubeconfig: hosts.yaml";
    kubernetes(fields, &file).map(|good| match good.access {
        Access::Written(api) => api,
        Access::Pod => panic!("as a pod"),
    })
}

#[test]
fn a_kubeconfig_is_read_as_far_as_no_other_program_is_needed() {
    let pair = rcgen::generate_simple_self_signed(["api".to_owned()]).unwrap();
    let data = |pem: String| BASE64_STANDARD.encode(pem);
    let (certificate, key) = (
        data(pair.cert.pem()),
        data(pair.signing_key.serialize_pem()),
    );
    let cluster =
        format!("server: \"https://api:6443/\", certificate-authority-data: {certificate}");
    let good = kubeconfig(&cluster, "token: secret").unwrap();
    assert_eq!(good.server.url, "https://api:6443");
    assert_eq!(good.server.ca, Some(pair.cert.pem().into_bytes()));
    let token = Token::read(b"secret").unwrap();
    assert_eq!(good.bearer, Some(Bearer::Token(token)));
    let user = format!("client-certificate-data: {certificate}, client-key-data: {key}");
    let shown = kubeconfig(&cluster, &user).unwrap();
    assert!(shown.server.identity.is_some() && shown.bearer.is_none());
    let by_file = kubeconfig(&cluster, "tokenFile: token").unwrap();
    let Some(Bearer::File(path)) = by_file.bearer else {
        panic!("no file");
    };
    assert!(path.is_absolute() && path.ends_with("token"), "{path:?}");
    // What is renewed counts before what was written once, and what is empty is not there.
    let both = kubeconfig(&cluster, "token: secret, tokenFile: token").unwrap();
    assert!(matches!(both.bearer, Some(Bearer::File(_))));
    let empty = format!("{cluster}, proxy-url: \"\"");
    let one = kubeconfig(&empty, "token: secret, tokenFile: \"\"").unwrap();
    assert_eq!(one.bearer, good.bearer);
    let loopback = "server: \"http://127.0.0.1:1\"";
    assert!(kubeconfig(loopback, "token: secret").is_ok());
    let secure = "server: \"https://api\"";
    let elsewhere = "show a certificate, a token or a tokenFile, such as that of a service account";
    for (cluster, user, reason) in [
        (
            "server: \"http://api\"",
            "token: a",
            "server: http://api is neither https:// nor loopback, so all would be sent in the clear".to_owned(),
        ),
        (
            "server: \"http://api\"",
            "",
            "server: http://api is neither https:// nor loopback, so all would be sent in the clear".to_owned(),
        ),
        (
            "server: \"https://a:secret@api\"",
            "token: a",
            "server: is not https://host:port, or http://host:port of loopback".to_owned(),
        ),
        (
            "server: \"api:6443\"",
            "token: a",
            "server: is not https://host:port, or http://host:port of loopback".to_owned(),
        ),
        (
            "server: \"http://127.0.0.1:1\", certificate-authority-data: YQ==",
            "token: a",
            "certificate-authority: only an https:// server reads it".to_owned(),
        ),
        (
            "server: \"https://api\", insecure-skip-tls-verify: true",
            "token: a",
            "insecure-skip-tls-verify is not heeded: the API server's certificate is always checked, for the name in `server`".to_owned(),
        ),
        (
            "server: \"https://api\", proxy-url: \"http://p\"",
            "token: a",
            "proxy-url is not heeded: no proxy is asked on the way".to_owned(),
        ),
        (
            secure,
            "exec: { command: login }",
            format!("exec is not heeded: {elsewhere}"),
        ),
        (
            secure,
            "username: a, password: b",
            format!("username is not heeded: {elsewhere}"),
        ),
        (secure, "token: a b", "token: is not one token".to_owned()),
        (
            secure,
            "client-certificate-data: YQ==",
            "client-certificate and client-key are only of use together".to_owned(),
        ),
        (
            "server: \"https://api\", certificate-authority-data: \"?\"",
            "token: a",
            "certificate-authority: is not base64".to_owned(),
        ),
        (
            "server: \"https://api\", certificate-authority-data: YQ==",
            "token: a",
            "certificate-authority: no certificate in PEM".to_owned(),
        ),
    ] {
        let error = kubeconfig(cluster, user).unwrap_err();
        let start = "c.yaml:2: clusters.rules.kubernetes.kubeconfig: hosts.yaml: ";
        assert_eq!(error, format!("{start}{reason}"));
    }
    let fields = "namespace: a, port: 80, kubeconfig: hosts.yaml";
    let error = kubernetes(fields, "current-context: x").unwrap_err();
    assert!(
        error.ends_with("current-context: there is no context \"x\""),
        "{error}"
    );
}

#[test]
fn a_token_is_sent_in_the_clear_only_where_that_is_written() {
    let with_token = |address: &str, more: &str| {
        let fields = format!("address: \"{address}\", token_file: hosts.yaml{more}");
        consul(&fields, "secret").map(|consul| consul.token.is_some())
    };
    assert_eq!(
        with_token("http://10.0.0.1:8500", "").unwrap_err(),
        "c.yaml:2: clusters.r.consul.token_file: http://10.0.0.1:8500 is neither https:// nor loopback, so the token \
         would be sent in the clear; write plaintext: true if that is meant"
    );
    for address in ["http://consul", "http://localhost.b:1", "http://[::2]:1"] {
        assert!(with_token(address, "").is_err(), "{address}");
        assert!(with_token(address, ", plaintext: false").is_err());
        assert_eq!(with_token(address, ", plaintext: true"), Ok(true));
        let address = format!("address: \"{address}\"");
        assert!(consul(&address, "").is_ok(), "nothing is to be kept secret");
    }
    for private in [
        "https://consul",
        "http://127.9.0.1:1/p",
        "http://localhost:1",
        "http://[::1]:1",
    ] {
        assert_eq!(with_token(private, ""), Ok(true), "{private}");
    }
}

#[test]
fn certificates_for_consul_have_to_fit() {
    let pair = rcgen::generate_simple_self_signed(["c".to_owned()]).unwrap();
    let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let load = |fields: &str| {
        let text =
            format!("clusters: {{ r: {{ consul: {{ address: \"https://c\", {fields} }} }} }}\n");
        std::fs::write(&path, text).unwrap();
        let loaded = load(&path).map_err(|(error, _)| format!("{}: {}", error.field, error.reason));
        loaded.map(|loaded| of_consul(&loaded.config))
    };
    std::fs::write(folder.path().join("c.pem"), &certificate).unwrap();
    std::fs::write(folder.path().join("k.pem"), &key).unwrap();
    let other = rcgen::generate_simple_self_signed(["c".to_owned()]).unwrap();
    std::fs::write(
        folder.path().join("o.pem"),
        other.signing_key.serialize_pem(),
    )
    .unwrap();
    let good = load("ca: c.pem, certificate: c.pem, key: k.pem").unwrap();
    assert!(!format!("{good:?}").contains("PRIVATE"));
    assert_eq!(
        load("ca: c.pem, certificate: c.pem").unwrap_err(),
        "clusters.r.consul.key: required with certificate"
    );
    assert_eq!(
        load("ca: c.pem, key: k.pem").unwrap_err(),
        "clusters.r.consul.certificate: required with key"
    );
    let unfit = load("ca: c.pem, certificate: c.pem, key: o.pem").unwrap_err();
    assert!(
        unfit.starts_with("clusters.r.consul.certificate: "),
        "{unfit}"
    );
}

#[test]
fn certificates_for_hosts_have_to_fit_and_their_ends_are_known_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    let generate = || rcgen::generate_simple_self_signed(["c".to_owned()]).unwrap();
    let (pair, other) = (generate(), generate());
    write("c.pem", pair.cert.pem());
    write("k.pem", pair.signing_key.serialize_pem());
    write("o.pem", other.signing_key.serialize_pem());
    for section in ["scrape", "cache"] {
        let load = |fields: &str| {
            let tls = format!(
                "clusters: {{ r: {{ consul: {{}}, {section}: {{ tls: {{ {fields} }} }} }} }}\n"
            );
            std::fs::write(&path, tls).unwrap();
            let loaded = load(&path);
            loaded.map_err(|(error, _)| format!("{}: {}", error.field, error.reason))
        };
        let field = |name: &str| format!("clusters.r.{section}.tls.{name}");
        let good = load("ca: c.pem, certificate: c.pem, key: k.pem, server_name: host.r").unwrap();
        assert!(!format!("{good:?}").contains("PRIVATE"));
        let named: Vec<&String> = good.config.certificates.keys().collect();
        assert_eq!(named, [&field("ca"), &field("certificate")]);
        // rcgen's end with the year 4095.
        let until = good.config.certificates[&field("ca")].until;
        assert_eq!(until, 67_090_118_400);
        for (fields, said) in [
            (
                "certificate: c.pem",
                field("key: required with certificate"),
            ),
            ("key: k.pem", field("certificate: required with key")),
            ("ca: k.pem", field("ca: k.pem has no CERTIFICATE in PEM")),
            (
                "server_name: \"127.0.0.1\"",
                field(
                    "server_name: \"127.0.0.1\" is not a DNS name, as in the hosts' certificates",
                ),
            ),
        ] {
            assert_eq!(load(fields).unwrap_err(), said);
        }
        let unfit = load("certificate: c.pem, key: o.pem").unwrap_err();
        assert!(unfit.starts_with(&field("certificate: ")), "{unfit}");
    }
}

/// A configuration with this `authorization`, as loaded.
fn authorized(tls: bool, rest: &str) -> Result<Arc<Config>, String> {
    let folder = tempfile::tempdir().unwrap();
    let pair = rcgen::generate_simple_self_signed(["c".to_owned()]).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    write("c.pem", pair.cert.pem());
    write("k.pem", pair.signing_key.serialize_pem());
    let client_ca = if tls { ", client_ca: c.pem" } else { "" };
    let xds = format!("xds: {{ tls: {{ certificate: c.pem, key: k.pem{client_ca} }} }}\n");
    write(
        "c.yaml",
        format!("clusters: {{ r: {{ consul: {{}} }} }}\n{xds}{rest}"),
    );
    let loaded = load(&folder.path().join("c.yaml"));
    let said = loaded.map(|loaded| loaded.config);
    said.map_err(|(error, _)| format!("{}: {}: {}", error.line, error.field, error.reason))
}

#[test]
fn a_rule_may_name_a_cluster_that_a_policy_may_bring_and_no_other_that_is_not_there() {
    let with = |cluster: &str| {
        let policies = "policies: { namespaces: [shop] }\n";
        let rule = format!(
            "authorization:\n- {{ identity: a, clusters: [\"{cluster}\"], what: [keys] }}\n"
        );
        authorized(true, &format!("{policies}{rule}"))
    };
    for good in ["r", "rules.shop", "*"] {
        assert!(with(good).is_ok(), "{good}");
    }
    for bad in ["rules", "rules.shpo", "shop"] {
        let said = with(bad).unwrap_err();
        assert!(
            said.contains("is no cluster of this configuration"),
            "{said}"
        );
    }
}

#[test]
fn every_refusal_of_a_rule_names_line_field_and_reason() {
    let rule = |fields: &str| format!("authorization:\n- {{ {fields} }}\n");
    for (fields, said) in [
        (
            "clusters: [r], what: [keys]",
            "identity: required; a SPIFFE id or DNS name",
        ),
        (
            "identity: \"spiffe://*\", clusters: [r], what: [keys]",
            "identity: \"spiffe://*\" is not *, a SPIFFE id or DNS name, or the beginning of an id with /* at its end",
        ),
        (
            "identity: a, clusters: [r]",
            "what: required; what is allowed",
        ),
        (
            "identity: a, clusters: [r], what: [keys, all]",
            "what[1]: \"all\" is unknown; one of tables, keys, report, capacity, replica",
        ),
        (
            "identity: a, what: [keys]",
            "clusters: required; a list of clusters, or [\"*\"] for all",
        ),
        (
            "identity: a, clusters: [r, s], what: [keys]",
            "clusters[1]: \"s\" is no cluster of this configuration",
        ),
        (
            "identity: a, clusters: [r], what: [capacity], hosts: [a.example]",
            "hosts[0]: \"a.example\" is neither ip nor ip:port",
        ),
        (
            "identity: a, clusters: [r], what: [keys], hosts: [\"127.0.0.1\"]",
            "hosts: only a rule with what: [capacity] reads it",
        ),
        (
            "identity: a, clusters: [r], what: [keys], max_priority: 1",
            "max_priority: only a rule with what: [report] reads it",
        ),
        (
            "identity: a, clusters: [r], what: [report], max_priority: 32",
            "max_priority: 32 is not in 0 to 31",
        ),
    ] {
        let refused = authorized(true, &rule(fields)).unwrap_err();
        assert_eq!(refused, format!("4: authorization[0].{said}"));
    }
    let unknown = authorized(true, &rule("identity: a, who: b")).unwrap_err();
    assert!(unknown.contains("unknown field `who`"), "{unknown}");
    let good = rule("identity: a, clusters: [\"*\"], what: [report, capacity], max_priority: 31");
    for (tls, rest, said) in [
        (
            true,
            "authorization: []\n".to_owned(),
            ": authorization: names no rule, which would deny everything; leave it out",
        ),
        (
            false,
            good.clone(),
            ": authorization: needs xds.tls.client_ca: without it nobody has an identity",
        ),
        (
            true,
            format!(
                "{good}replicas: {{ address: \"a:1\", ca: c.pem, certificate: c.pem, private_key: k.pem }}\n"
            ),
            ": authorization: needs a rule with what: [replica] for the certificate of the other replicas",
        ),
    ] {
        let refused = authorized(tls, &rest).unwrap_err();
        assert!(refused.ends_with(said), "{refused}");
    }
    let config = authorized(true, &good).unwrap();
    assert_eq!(config.authorization.as_ref().unwrap().0.len(), 1);
    assert!(authorized(true, "").unwrap().authorization.is_none());
}

#[test]
fn what_is_left_out_of_consul_has_the_documented_default() {
    let consul = consul("", "").unwrap();
    let question = &consul.question;
    assert_eq!(consul.server.url, "http://127.0.0.1:8500");
    assert_eq!((question.service.as_str(), question.connect), ("r", true));
    assert_eq!((&question.datacenter, &question.filter), (&None, &None));
    assert!(question.tags.is_empty() && consul.token.is_none());
    assert_eq!(
        (question.weight_millicores, consul.wait),
        (0, Duration::from_secs(30))
    );
}

#[test]
fn an_engine_brings_its_names_and_each_can_be_written_all_the_same() {
    let named = |metrics: &str| {
        let text = format!(
            "clusters: {{ r: {{ hosts_file: hosts.yaml, scrape: {{ metrics: {metrics} }} }} }}\n"
        );
        let config = said(&text, "").unwrap();
        let scrape = config.clusters["r"].scrape.clone().unwrap();
        (
            scrape.in_progress,
            scrape.adds_queued,
            scrape.queued,
            scrape.queuing_delay.unwrap_or_default(),
        )
    };
    let names = |in_progress: &str, adds_queued, queued: &str, delay: &str| {
        (
            in_progress.to_owned(),
            adds_queued,
            queued.to_owned(),
            delay.to_owned(),
        )
    };
    let weirs = ("weir_host_queued", "weir_host_queuing_delay_seconds");
    let vllms = (
        "vllm:num_requests_waiting",
        "vllm:request_queue_time_seconds",
    );
    assert_eq!(
        named("{}"),
        names("weir_host_in_progress", false, weirs.0, weirs.1)
    );
    assert_eq!(named("{ running: x }"), names("x", true, weirs.0, weirs.1));
    assert_eq!(
        named("{ engine: vllm }"),
        names("vllm:num_requests_running", true, vllms.0, vllms.1)
    );
    assert_eq!(
        named("{ engine: vllm, in_progress: x, queued: y }"),
        names("x", false, "y", vllms.1)
    );
    assert_eq!(
        named("{ engine: sglang, running: x }"),
        names(
            "x",
            true,
            "sglang:num_queue_reqs",
            "sglang:queue_time_seconds"
        )
    );
    assert_eq!(
        named("{ engine: trtllm }"),
        names(
            "trtllm_num_requests_running",
            true,
            "trtllm_num_requests_waiting",
            "trtllm_request_queue_time_seconds"
        )
    );
    let [active, waiting] = ["active", "waiting"]
        .map(|which| format!("nv_trt_llm_request_metrics{{request_type=\"{which}\"}}"));
    assert_eq!(
        named("{ engine: triton }"),
        names(&active, false, &waiting, "")
    );
    assert_eq!(
        named("{ engine: triton, queuing_delay: d }"),
        names(&active, false, &waiting, "d")
    );
}

#[test]
fn an_engines_page_is_where_it_has_it_unless_another_path_is_written() {
    let scrape = |written: &str| {
        let text = format!("clusters: {{ r: {{ hosts_file: hosts.yaml, scrape: {written} }} }}\n");
        let config = said(&text, "").unwrap();
        let scrape = config.clusters["r"].scrape.clone().unwrap();
        (scrape.poll.path, scrape.floors_queued)
    };
    for (written, path, floors) in [
        ("{}", "/metrics", false),
        ("{ metrics: { engine: vllm } }", "/metrics", false),
        ("{ metrics: { engine: triton } }", "/metrics", true),
        (
            "{ metrics: { engine: trtllm } }",
            "/prometheus/metrics",
            false,
        ),
        ("{ path: /m, metrics: { engine: trtllm } }", "/m", false),
        (
            "{ metrics: { engine: triton, queued: q } }",
            "/metrics",
            false,
        ),
    ] {
        assert_eq!(scrape(written), (path.to_owned(), floors), "{written}");
    }
}

#[test]
fn hosts_with_an_engine_serve_prompts_unless_jobs_are_written() {
    let serves = |scrape: &str, policy: &str| {
        let text = format!(
            "clusters: {{ r: {{ hosts_file: hosts.yaml, scrape: {{ metrics: {scrape} }}, policy: {policy} }} }}\n"
        );
        let config = said(&text, "")?;
        let cluster = &config.clusters["r"];
        let reading = cluster.scrape.as_ref().unwrap().reading.clone();
        Ok::<_, String>((cluster.policy.serves, reading))
    };
    let weirs = "weir_host_reading_seconds".to_owned();
    let vllms = "vllm:request_prefill_time_seconds".to_owned();
    let (jobs, prompts) = (Serves::Jobs, Serves::Prompts);
    assert_eq!(serves("{}", "{}"), Ok((jobs, weirs.clone())));
    assert_eq!(
        serves("{ engine: vllm }", "{}"),
        Ok((prompts, vllms.clone()))
    );
    for engine in ["sglang", "triton"] {
        let metrics = format!("{{ engine: {engine} }}");
        assert_eq!(serves(&metrics, "{}"), Ok((prompts, weirs.clone())));
    }
    assert_eq!(
        serves("{ engine: trtllm }", "{}"),
        Ok((prompts, "trtllm_request_prefill_time_seconds".to_owned()))
    );
    let writing = |metrics: &str| {
        let cluster = format!("r: {{ hosts_file: hosts.yaml, scrape: {{ metrics: {metrics} }} }}");
        let config = said(&format!("clusters: {{ {cluster} }}\n"), "").unwrap();
        config.clusters["r"].scrape.clone().unwrap().writing
    };
    for (metrics, name) in [
        ("{ engine: vllm }", "vllm:request_decode_time_seconds"),
        ("{ engine: trtllm }", "trtllm_request_decode_time_seconds"),
        ("{ engine: triton }", "weir_host_writing_seconds"),
        ("{ engine: vllm, writing: x }", "x"),
    ] {
        assert_eq!(writing(metrics), name);
    }
    assert_eq!(
        serves("{ engine: vllm }", "{ serves: jobs }"),
        Ok((jobs, vllms))
    );
    let written = serves("{ reading: x }", "{ serves: prompts }");
    assert_eq!(written, Ok((prompts, "x".to_owned())));
    let refused = serves("{}", "{ serves: words }").unwrap_err();
    assert!(
        refused.ends_with("policy.serves: \"words\" is unknown; one of jobs, prompts"),
        "{refused}"
    );
}

#[test]
fn a_plan_for_hosts_that_are_found_names_them_in_their_one_spelling() {
    let main = "clusters:\n  r:\n    consul: {}\n    policy: { selection: caching_plan }\n    caching_plan: hosts.yaml\n";
    let config = said(main, "key,address\na,127.0.0.1:2\n").unwrap();
    assert!(
        config.clusters["r"]
            .plan
            .as_ref()
            .unwrap()
            .contains_key(&HostId::of("127.0.0.1:2"))
    );
    let refused = said(main, "key,address\na,[0:0::1]:2\n").unwrap_err();
    assert_eq!(
        refused,
        "hosts.yaml:2: address: \"[0:0::1]:2\" is no host of this cluster"
    );
}
