// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::sources::discovery::MOST_SHOWN;

fn question(connect: bool) -> Question {
    Question {
        service: "rules".into(),
        connect,
        datacenter: None,
        filter: None,
        tags: vec![],
        weight_millicores: 0,
    }
}

/// The sidecar of `id` as Consul 1.22 tells of it, as far as it matters.
fn sidecar(id: &str, port: u16) -> Value {
    json!({
        "Node": { "Node": "n", "Address": "10.0.0.9", "Datacenter": "dc1" },
        "Service": {
            "ID": format!("{id}-sidecar-proxy"), "Service": "rules-sidecar-proxy", "Kind": "connect-proxy",
            "Address": "", "Port": port, "Tags": null, "Meta": null,
            "Weights": { "Passing": 1, "Warning": 1 },
            "Proxy": {
                "DestinationServiceName": "rules", "DestinationServiceID": id,
                "LocalServiceAddress": "127.0.0.1", "LocalServicePort": 9001,
            },
        },
        "Checks": [ { "CheckID": "c", "Status": "passing" }, { "CheckID": "d", "Status": "warning" } ],
    })
}

fn with(mut entry: Value, pointer: &str, value: Value) -> Value {
    *entry.pointer_mut(pointer).unwrap() = value;
    entry
}

fn found(entries: &[Value], question: &Question) -> Found {
    read(Value::from(entries).to_string().as_bytes(), question).unwrap()
}

fn one(entry: Value) -> Host {
    let found = found(&[entry], &question(true));
    assert_eq!((found.complaints, found.hosts.len()), (vec![], 1));
    found.hosts[0].clone()
}

fn complaint(entry: Value) -> String {
    let found = found(&[entry], &question(true));
    found.complaints.last().unwrap().clone()
}

#[test]
fn the_host_is_the_sidecar_and_its_metrics_are_the_applications() {
    let host = one(sidecar("rules-1", 21_000));
    assert_eq!(
        host.address, "10.0.0.9:21000",
        "the node's, where it has none of its own"
    );
    assert_eq!(
        host.metrics_address, "10.0.0.9:9001",
        "a loopback address is the sidecar's own machine"
    );
    assert_eq!(host.cache_address, host.metrics_address);
    assert_eq!((host.capacity_millicores, host.preempt_at_unix_ms), (0, 0));
    let instance = host.instance.unwrap();
    assert_eq!(
        (instance.id.as_str(), host.zone),
        ("rules-1-sidecar-proxy", None)
    );
    let host = one(with(sidecar("a", 1), "/Service/Address", json!("::1")));
    assert_eq!(
        (host.address.as_str(), host.metrics_address.as_str()),
        ("[::1]:1", "[::1]:9001")
    );
    let elsewhere = with(
        sidecar("a", 1),
        "/Service/Proxy/LocalServiceAddress",
        json!("10.0.0.7"),
    );
    assert_eq!(one(elsewhere).metrics_address, "10.0.0.7:9001");
    let meta = json!({ "weir-metrics-port": "9100", "zone": "a" });
    let host = one(with(sidecar("a", 1), "/Service/Meta", meta));
    assert_eq!(host.metrics_address, "10.0.0.9:9100");
    assert_eq!(host.zone.as_deref(), Some("a"));
}

#[test]
fn without_connect_the_host_is_the_service_itself() {
    let entry = json!({
        "Node": { "Node": "n", "Address": "10.0.0.9" },
        "Service": { "ID": "r", "Service": "Rules", "Address": "10.0.0.1", "Port": 80 },
    });
    let host = found(&[entry], &question(false)).hosts[0].clone();
    assert_eq!(
        (host.address.as_str(), host.metrics_address.as_str()),
        ("10.0.0.1:80", "10.0.0.1:80")
    );
}

#[test]
fn capacity_is_what_the_instance_tells_or_its_weight_times_the_unit() {
    let mut question = question(true);
    question.weight_millicores = 250;
    let weighed = with(sidecar("a", 1), "/Service/Weights/Passing", json!(8));
    assert_eq!(
        found(std::slice::from_ref(&weighed), &question).hosts[0].capacity_millicores,
        2000
    );
    let meta = json!({ "weir-capacity-millicores": "1500", "weir-preempt-at": "1700000000000" });
    let told = &found(&[with(weighed, "/Service/Meta", meta)], &question).hosts[0];
    assert_eq!(
        (told.capacity_millicores, told.preempt_at_unix_ms),
        (1500, 1_700_000_000_000)
    );
}

#[test]
fn a_critical_check_takes_an_instance_out_and_a_warning_does_not() {
    let out = |status: &str| with(sidecar("a", 1), "/Checks/0/Status", json!(status));
    for status in ["critical", "maintenance", ""] {
        let found = found(&[out(status), sidecar("b", 2)], &question(true));
        assert_eq!(
            (found.hosts.len(), found.complaints.len()),
            (1, 0),
            "{status}"
        );
    }
    assert_eq!(one(out("warning")).address, "10.0.0.9:1");
    let none = found(&[out("critical")], &question(true));
    assert_eq!(
        none.complaints,
        ["no instance of \"rules\" can be used: 1 critical"]
    );
}

#[test]
fn an_instance_must_have_all_tags() {
    let mut question = question(true);
    question.tags = vec!["v2".into(), "x".into()];
    let tagged = |port, tags: &[&str]| with(sidecar("a", port), "/Service/Tags", json!(tags));
    let found = found(
        &[tagged(1, &["v2"]), tagged(2, &["x", "v2"]), sidecar("c", 3)],
        &question,
    );
    assert_eq!(
        (found.hosts.len(), found.hosts[0].address.as_str()),
        (1, "10.0.0.9:2")
    );
}

#[test]
fn of_two_with_one_address_the_first_by_id_stays_whatever_their_order() {
    let (a, b) = (sidecar("a", 1), sidecar("b", 1));
    for entries in [[a.clone(), b.clone()], [b, a]] {
        let found = found(&entries, &question(true));
        assert_eq!(
            found.hosts[0].instance.as_ref().unwrap().id,
            "a-sidecar-proxy"
        );
        assert_eq!(
            found.complaints,
            ["10.0.0.9:1 is of \"a-sidecar-proxy\" and of \"b-sidecar-proxy\"; the first counts"]
        );
    }
}

#[test]
fn what_cannot_be_named_or_read_is_complained_of_by_id() {
    let cases = [
        (
            "/Service/Address",
            json!("db.example"),
            "its address is \"db.example\"; only an IP address",
        ),
        (
            "/Service/Address",
            json!("0.0.0.0"),
            "0.0.0.0 is nobody's address",
        ),
        ("/Service/Port", json!(0), "0 is no port"),
        ("/Service/Port", json!(70_000), "70000 is no port"),
        (
            "/Service/Proxy/LocalServicePort",
            json!(0),
            "tells no port of its application",
        ),
        (
            "/Service/Meta",
            json!({ "weir-metrics-port": "x" }),
            "meta weir-metrics-port is \"x\"",
        ),
        (
            "/Service/Meta",
            json!({ "weir-capacity-millicores": "-1" }),
            "weir-capacity-millicores is \"-1\"",
        ),
        (
            "/Service/Meta",
            json!({ "weir-preempt-at": "soon" }),
            "weir-preempt-at is \"soon\"",
        ),
        (
            "/Service/Meta",
            json!({ "zone": "z".repeat(200) }),
            "zone has more than 128 bytes",
        ),
    ];
    for (pointer, value, expected) in cases {
        let complaint = complaint(with(sidecar("a", 1), pointer, value));
        assert!(
            complaint.starts_with("\"a-sidecar-proxy\": ") && complaint.contains(expected),
            "{complaint}"
        );
    }
}

#[test]
fn an_answer_that_is_not_one_is_refused_as_a_whole() {
    let refused = |body: &str| read(body.as_bytes(), &question(true)).unwrap_err();
    let other = with(
        sidecar("a", 1),
        "/Service/Proxy/DestinationServiceName",
        json!("billing"),
    );
    let lied = refused(&json!([sidecar("b", 2), other]).to_string());
    assert_eq!(
        lied.to_string(),
        "inconsistent: \"a-sidecar-proxy\" of \"billing\", which was not asked for"
    );
    assert_eq!(
        refused("<html>").to_string(),
        "bad_body: not a list of instances in JSON: expected value at line 1 column 1"
    );
    let untyped =
        refused(&json!([with(sidecar("a", 1), "/Service/Port", json!("80"))]).to_string());
    assert!(
        untyped
            .to_string()
            .starts_with("bad_body: [0].Service.Port: invalid type"),
        "{untyped}"
    );
    assert_eq!(refused("[").fault, Fault::BadBody);
    assert_eq!(read(b"[]", &question(true)), Ok(Found::default()));
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,300}".prop_map(Value::from),
        prop::sample::select(vec!["rules", "critical", "10.0.0.1", "::", "connect-proxy"])
            .prop_map(Value::from),
        Just(json!({})),
        Just(json!([])),
        Just(json!({ "weir-preempt-at": "99999999999999999999", "zone": "\u{1f980}" })),
    ]
}

/// Every field that is read, and some that are not.
const POINTERS: [&str; 16] = [
    "",
    "/Node",
    "/Node/Address",
    "/Service",
    "/Service/ID",
    "/Service/Kind",
    "/Service/Address",
    "/Service/Port",
    "/Service/Tags",
    "/Service/Meta",
    "/Service/Weights/Passing",
    "/Service/Proxy",
    "/Service/Proxy/DestinationServiceName",
    "/Service/Proxy/LocalServiceAddress",
    "/Service/Proxy/LocalServicePort",
    "/Checks",
];

fn damaged() -> impl Strategy<Value = Value> {
    let damage = prop::collection::vec((prop::sample::select(&POINTERS[..]), any_value()), 0..3);
    ("[a-c]{1,2}", 0u16..4, damage).prop_map(|(id, port, damage)| {
        let mut entry = sidecar(&id, port);
        for (pointer, value) in damage {
            if let Some(place) = entry.pointer_mut(pointer) {
                *place = value;
            }
        }
        entry
    })
}

/// What holds of whatever was read.
fn is_bounded(found: &Found) -> Result<(), TestCaseError> {
    prop_assert!(
        found.hosts.is_sorted_by(|a, b| a.address < b.address),
        "sorted, none twice"
    );
    prop_assert!(found.hosts.len() <= found.instances);
    prop_assert!(found.complaints.len() <= MOST_SHOWN + 2);
    for complaint in &found.complaints {
        // A name is cut to 200 bytes; quoted, a byte may become ten.
        prop_assert!(complaint.len() <= 5000, "{complaint}");
        prop_assert!(!complaint.contains('\n'));
    }
    for host in &found.hosts {
        let instance = host.instance.as_ref().unwrap();
        prop_assert!(instance.id.len().max(instance.node.len()) < 210);
        for address in [&host.address, &host.metrics_address, &host.cache_address] {
            let parsed: SocketAddr = address.parse().unwrap();
            prop_assert_eq!(&parsed.to_string(), address);
            prop_assert!(parsed.port() > 0);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn bytes_of_any_kind_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(found) = read(&body, &question(true)) {
            is_bounded(&found)?;
        }
    }

    #[test]
    fn damaged_answers_are_read_or_refused_and_what_is_read_can_be_named(
        entries in prop::collection::vec(damaged(), 0..40), connect: bool,
    ) {
        match read(Value::from(entries).to_string().as_bytes(), &question(connect)) {
            Ok(found) => is_bounded(&found)?,
            Err(error) => prop_assert!(error.detail.len() <= 2100, "{error}"),
        }
    }

    #[test]
    fn the_order_of_an_answer_says_nothing(
        entries in prop::collection::vec(("[a-c]{1,2}", 1u16..5), 0..12), seed: u64,
    ) {
        use rand::SeedableRng;
        use rand::seq::SliceRandom;
        // Ids are unique on a node.
        let ids: BTreeMap<String, u16> = entries.into_iter().collect();
        let mut entries: Vec<Value> = ids.iter().map(|(id, port)| sidecar(id, *port)).collect();
        let straight = found(&entries, &question(true));
        entries.shuffle(&mut rand::rngs::StdRng::seed_from_u64(seed));
        prop_assert_eq!(found(&entries, &question(true)), straight);
    }
}
