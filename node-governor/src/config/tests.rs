// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::frequency::Khz;
use crate::node::NodeCore;

mod mesh;
mod shares;

fn said(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.yaml");
    std::fs::write(&path, text).unwrap();
    let folder = format!("{}/", folder.path().display());
    load(&path).map_err(|error| error.to_string().replace(&folder, ""))
}

/// A certificate that is its own authority's, and its key, PEM.
fn pair() -> (String, String) {
    let pair = rcgen::generate_simple_self_signed(["control.example".to_owned()]).unwrap();
    (pair.cert.pem(), pair.signing_key.serialize_pem())
}

#[test]
fn every_refusal_names_file_line_field_and_reason() {
    let cases = [
        (
            "policy: { three_state: {} }\nbogus: 1\n",
            "g.yaml:2: unknown field `bogus`, expected one of cores, driver, tick, policy",
        ),
        ("", "g.yaml:1: policy: required"),
        ("policy: {}\n", "g.yaml:1: policy: names no policy"),
        (
            "policy:\n  three_state:\n    hot: 2\n",
            "g.yaml:3: policy.three_state.hot: \"2\" is not a frequency",
        ),
        (
            "policy: { three_state: { threshold: 5 } }\n",
            "g.yaml:1: policy.three_state.threshold: \"5\" is not a duration",
        ),
        (
            "tick: 0ms\npolicy: { three_state: {} }\n",
            "g.yaml:1: tick: 0ms is not in 1ms to 10s",
        ),
        (
            "cores: 3-1\npolicy: { three_state: {} }\n",
            "g.yaml:1: cores: \"3-1\" is not a list of cores",
        ),
        (
            "driver: fast\npolicy: { three_state: {} }\n",
            "g.yaml:1: driver: \"fast\" is unknown; one of auto, userspace, clamp",
        ),
        (
            "policy: { three_state: {} }\nadmin: { listen: '0.0.0.0:1' }\n",
            "g.yaml:2: admin.listen: not loopback",
        ),
        (
            "policy: { three_state: {} }\nevents: { events_per_lane: 100 }\n",
            "g.yaml:2: events.events_per_lane: 100 is not a power of two in 16 to 65536",
        ),
        (
            "policy: { three_state: {} }\nevents: { path: here }\n",
            "g.yaml:2: events.path: \"here\" is not an absolute path",
        ),
        (
            "policy: { three_state: {} }\nevents: { group: no-such-group-here }\n",
            "g.yaml:2: events.group: /etc/group has no \"no-such-group-here\"",
        ),
        (
            "policy: { three_state: {} }\nfunctions:\n  - { id: 1 }\n  - { id: 1 }\n",
            "g.yaml:4: functions[1].id: 1 is there already",
        ),
        (
            "policy: { three_state: {} }\nfunctions:\n  - { id: 16 }\n",
            "g.yaml:3: functions[0].id: 16 is not in 0 to 15",
        ),
        (
            "policy:\n  three_state: {}\n  powersave: {}\n",
            "g.yaml:3: policy.powersave: contradicts three_state; leave one out",
        ),
        (
            "policy:\n  multi_state:\n    ladder:\n      - { after: 1s, frequency: 2 GHz }\n",
            "g.yaml:3: policy.multi_state.ladder: must begin with a step after 0",
        ),
        (
            "policy:\n  multi_state:\n    ladder:\n      - { after: 1s }\n",
            "g.yaml:4: policy.multi_state.ladder[0].frequency: required",
        ),
        (
            "policy: { iso_latency: { target: 0s } }\n",
            "g.yaml:1: policy.iso_latency.target: must not be 0",
        ),
        (
            "policy: { three_state: {} }\nfunctions:\n  - { id: 1, ladder: [] }\n",
            "g.yaml:3: functions[0].ladder: only policy multi_state reads it",
        ),
        (
            "policy: { performance: { fast: yes } }\n",
            "g.yaml:1: unknown field `fast`",
        ),
        (
            "policy: { three_state: {} }\ntail: { source: prometheus }\n",
            "g.yaml:1: tail.url: required",
        ),
        (
            "policy: { three_state: {} }\ntail: { metric: x }\n",
            "g.yaml:2: tail.metric: only source prometheus or envoy reads it",
        ),
        (
            "policy: { three_state: {} }\ntail: { every: 1s }\n",
            "g.yaml:2: tail.every: only source prometheus, envoy or promql reads it",
        ),
        (
            "policy: { three_state: {} }\ntail: { source: promql, query: x }\n",
            "g.yaml:1: tail.url: required; as in http://127.0.0.1:9090",
        ),
        (
            "policy: { three_state: {} }\ntail: { source: promql, url: 'http://prometheus:9090', query: x }\n",
            "g.yaml:2: tail.url: \"http://prometheus:9090\" is not http://ip:port or http://ip:port/prefix",
        ),
        (
            "policy: { three_state: {} }\ntail: { source: promql, url: 'http://127.0.0.1:9090/?a' }\n",
            "g.yaml:2: tail.url: is more than the server's",
        ),
        (
            "policy: { three_state: {} }\ntail: { source: promql, url: 'http://127.0.0.1:9090' }\n",
            "g.yaml:1: tail.query: required",
        ),
        (
            "policy: { three_state: {} }\ntail: { source: promql, url: 'http://127.0.0.1:9090', query: ' ' }\n",
            "g.yaml:2: tail.query: required",
        ),
        (
            "policy: { three_state: {} }\ntail: { source: promql, url: 'http://127.0.0.1:9090', query: x, window: 1s }\n",
            "g.yaml:2: tail.window: the query says it",
        ),
        (
            "policy: { three_state: {} }\ntail: { source: promql, url: 'http://127.0.0.1:9090', query: x, every: 10ms }\n",
            "g.yaml:2: tail.every: 10ms is not in 50ms to 60s",
        ),
        (
            "policy: { three_state: {} }\nuprobes:\n  - { function: 1, binary: /bin/true }\n",
            "g.yaml:3: uprobes[0].symbol: required",
        ),
        (
            "policy: { three_state: {} }\nuprobes:\n  - { function: 1, binary: /bin/true, symbol: main, cgroup: /a }\n",
            "g.yaml:3: uprobes[0].cgroup: \"/a\" is not a path below the cgroup mount",
        ),
    ];
    for (text, reason) in cases {
        let error = said(text).unwrap_err();
        assert!(error.starts_with(reason), "{text}\n{error}\n{reason}");
    }
    let gone = load(Path::new("/nowhere/g.yaml")).unwrap_err().to_string();
    assert!(gone.starts_with("/nowhere/g.yaml: cannot read:"), "{gone}");
}

#[test]
fn defaults_are_those_of_the_document() {
    let config = said("policy: { three_state: {} }\n").unwrap();
    assert_eq!(config.tick, Duration::from_millis(50));
    assert_eq!(config.cores, None);
    assert_eq!(config.admin.to_string(), "127.0.0.1:9414");
    assert!(matches!(config.policy, Some(Policy::ThreeState(_))));
}

#[test]
fn a_query_has_a_server_and_latency_slack_looks_at_the_95th_percentile() {
    let query = "tail: { source: promql, url: 'http://127.0.0.1:9090/prometheus/', query: 'a{b=\"c\"}', every: 250ms }";
    let config = said(&format!("policy: {{ powersave: {{}} }}\n{query}\n")).unwrap();
    let wanted = Query {
        address: "127.0.0.1:9090".parse().unwrap(),
        prefix: "/prometheus".into(),
        query: "a{b=\"c\"}".into(),
    };
    assert_eq!(config.tail.source, TailSource::Query(wanted));
    assert_eq!(config.tail.every, Duration::from_millis(250));
    assert_eq!(config.tail.quantile, 0.99);
    let config = said("service: { pid: 7 }\ncore_policy: { latency_slack: {} }\n").unwrap();
    assert_eq!(config.tail.quantile, 0.95);
}

#[test]
fn every_policy_can_be_had_by_its_name_alone() {
    for name in [
        "performance",
        "powersave",
        "ondemand",
        "schedutil",
        "two_state",
        "three_state",
        "multi_state",
        "iso_latency",
        "slow_to_fast",
        "adaptive",
        "rubik",
        "octopus_man",
        "hipster",
    ] {
        said(&format!("policy: {{ {name}: {{}} }}\n")).unwrap();
    }
}

#[test]
fn functions_have_ladders_of_their_own() {
    let text = "functions:\n  - id: 3\n    name: score\n    ladder:\n      - { frequency: 50 % }\n      - { after: 20ms, frequency: 100 % }\npolicy: { multi_state: {} }\n";
    let config = said(text).unwrap();
    assert_eq!(config.functions, [(3, "score".to_owned())]);
    let Some(Policy::MultiState(policy)) = config.policy else {
        panic!("{:?}", config.policy);
    };
    let [(3, ladder)] = &policy.functions[..] else {
        panic!("{policy:?}");
    };
    assert_eq!(ladder[1].after, Duration::from_millis(20));
}

#[test]
fn a_frequency_that_a_core_has_not_is_refused_with_its_table() {
    let config = said("policy:\n  three_state:\n    hot: 2.1 GHz\n").unwrap();
    let steps: Vec<Khz> = [1_000_000, 2_000_000, 2_600_000].map(Khz).to_vec();
    let range = Range {
        min: steps[0],
        max: steps[2],
        steps,
    };
    let node = |range| Node {
        cores: vec![NodeCore { number: 3, range }],
    };
    let error = config.fits(&node(range.clone())).unwrap_err().to_string();
    let reason =
        ":3: policy.three_state.hot: cpu3 has no 2.1 GHz; it has 1 GHz, 2 GHz, 2.6 GHz; a share";
    assert!(error.contains(reason), "{error}");
    let any = Range {
        steps: vec![],
        ..range.clone()
    };
    config.fits(&node(any)).unwrap();
    let slow = Range {
        max: Khz(2_000_000),
        steps: vec![],
        ..range
    };
    let error = config.fits(&node(slow)).unwrap_err().to_string();
    assert!(error.contains("1 GHz to 2 GHz"), "{error}");
    assert!(said("policy: { three_state: { idle: 0 %, hot: 50 %, over: 100 % } }").is_ok());
}

#[test]
fn the_example_has_the_defaults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("weir-governor.yaml");
    let example = load(&path).unwrap();
    let default = said("policy: { schedutil: {} }\n").unwrap();
    assert_eq!(example.policy, default.policy);
    assert_eq!(example.tick, default.tick);
    assert_eq!(example.cores, default.cores);
    assert_eq!(example.driver, default.driver);
    assert_eq!(example.events.path, default.events.path);
    assert_eq!(example.events.lanes, default.events.lanes);
    assert_eq!(
        example.events.events_per_lane,
        default.events.events_per_lane
    );
    assert_eq!(example.tail, default.tail);
    assert_eq!(example.admin, default.admin);
    assert_eq!(example.state_directory, default.state_directory);
}

/// What the example has behind a `#` at the beginning of a line, of core policies one alone, with files that are
/// there.
fn uncommented(policy: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("weir-governor.yaml");
    let example = std::fs::read_to_string(path).unwrap();
    let mut within = "";
    let mut text = String::new();
    for line in example.lines() {
        let is_text = line.starts_with("# ") && !line.starts_with("#  ");
        let line = line.strip_prefix('#').filter(|_| !is_text).unwrap_or(line);
        match line {
            "  blocks:" | "  latency_slack:" | "  parties:" | "  heracles:" | "  hipster_co:"
            | "  static_plan:" => {
                within = line.trim();
            }
            "" => within = "",
            _ => {}
        }
        let is_other = !within.is_empty() && within != format!("{policy}:");
        let is_second = line.starts_with("  pid");
        if !is_other && !is_second {
            text.push_str(line);
            text.push('\n');
        }
    }
    let here = text.replace("/usr/bin/canneal", "/bin/true");
    here.replace("/srv/batch", "/").replace("nobody", "0")
}

#[test]
fn a_hot_function_is_watched_in_the_services_cgroup_unless_another_or_a_process_is_named() {
    let divided = "service: { cgroup: a/b }\ncore_policy: { blocks: {} }\n";
    let cgroup = |begin: &str, more: &str| {
        let uprobe = format!("{{ function: 1, binary: /bin/true, symbol: main{more} }}");
        let read = said(&format!("{begin}uprobes: [ {uprobe} ]\n"));
        read.unwrap().uprobes.remove(0).cgroup
    };
    let alone = "policy: { three_state: {} }\n";
    assert_eq!(cgroup(alone, ""), None);
    assert_eq!(cgroup(alone, ", cgroup: c"), Some("c".to_owned()));
    assert_eq!(cgroup(divided, ""), Some("a/b".to_owned()));
    assert_eq!(cgroup(divided, ", cgroup: c"), Some("c".to_owned()));
    assert_eq!(cgroup(divided, ", cgroup: all"), None);
    assert_eq!(cgroup(divided, ", pid: 4711"), None);
}

#[test]
fn what_the_example_has_commented_out_is_good_and_has_the_defaults() {
    use crate::config::shares::Division;
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = pair();
    for (file, text) in [("ca", &certificate), ("cert", &certificate), ("key", &key)] {
        let path = folder.path().join(file).with_extension("pem");
        std::fs::write(path, text).unwrap();
    }
    let config = |policy: &str| {
        let path = folder.path().join("g.yaml");
        std::fs::write(&path, uncommented(policy)).unwrap();
        load(&path).unwrap()
    };
    let default = said("service: { pid: 7 }\ncore_policy: { blocks: {} }\n").unwrap();
    let default = default.shares.unwrap();
    let blocks = config("blocks");
    let mesh = blocks.mesh.unwrap();
    assert_eq!(mesh.pressure, pressure::Params::default());
    assert!(mesh.trust.authority.is_some() && mesh.trust.identity.is_some());
    let shares = blocks.shares.unwrap();
    assert_eq!(shares.division, default.division);
    assert_eq!(shares.batch, default.batch);
    assert_eq!(shares.jobs.len(), 2);
    let shares = config("latency_slack").shares.unwrap();
    let slack = crate::cores::latency_slack::Params::default();
    assert_eq!(shares.division, Division::LatencySlack(slack));
    let shares = config("parties").shares.unwrap();
    let parties = crate::cores::parties::Params::default();
    assert_eq!(shares.division, Division::Parties(parties));
    let shares = config("heracles").shares.unwrap();
    let heracles = crate::cores::heracles::Params::default();
    assert_eq!(shares.division, Division::Heracles(heracles));
    let shares = config("hipster_co").shares.unwrap();
    let hipster_co = crate::cores::hipster_co::Params::default();
    assert_eq!(shares.division, Division::HipsterCo(hipster_co));
    let shares = config("static_plan").shares.unwrap();
    shares.policy(&(0..4).collect()).unwrap();
}
