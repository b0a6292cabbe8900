// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::frequency::Khz;
use crate::plan::NodeCore;

fn said(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.yaml");
    std::fs::write(&path, text).unwrap();
    let folder = format!("{}/", folder.path().display());
    load(&path).map_err(|error| error.to_string().replace(&folder, ""))
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
    assert!(matches!(config.policy, Policy::ThreeState(_)));
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
