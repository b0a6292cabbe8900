// SPDX-License-Identifier: Apache-2.0
//! What comes of entries, by what stands there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::{Control, Datacenter, Mistake, Module, Weir};

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

fn weir() -> Weir {
    Weir {
        services: names(["rules"]),
        callers: names(["caller"]),
        control: Control::Service("weir-control".into()),
        module: Module::File("/weir.wasm".into()),
        settings: json!({}),
    }
}

fn datacenter() -> Datacenter {
    Datacenter {
        name: "dc1".into(),
        trust_domain: "t.consul".into(),
    }
}

fn shares(weir: &Weir) -> Vec<Share> {
    weir.shares(&datacenter()).unwrap()
}

fn share(weir: &Weir, kind: Kind, name: &str) -> Share {
    let mut all = shares(weir).into_iter();
    all.find(|one| (one.kind, &*one.name) == (kind, name))
        .unwrap()
}

/// Of the caller, as the others are short.
fn caller(weir: &Weir) -> Share {
    share(weir, Kind::Defaults, "caller")
}

fn written(weir: &Weir) -> Value {
    caller(weir).with(None, false).unwrap().entry.unwrap()
}

fn reasons(result: Result<Written, Refused>) -> String {
    result.unwrap_err().to_string()
}

/// As Consul answers: with fields of its own.
fn answered(entry: &Value) -> Value {
    let mut entry = entry.clone();
    entry["CreateIndex"] = json!(7);
    entry["ModifyIndex"] = json!(9);
    entry["TransparentProxy"] = json!({});
    entry["Expose"] = json!({"Paths": null});
    entry
}

#[test]
fn entries_come_in_an_order_in_which_callers_find_the_rest() {
    let kinds = shares(&weir()).into_iter();
    let kinds: Vec<_> = kinds
        .map(|share| format!("{} {}", share.kind, share.name))
        .collect();
    let expected = [
        "service-defaults rules",
        "service-defaults weir-control",
        "service-intentions rules",
        "service-intentions weir-control",
        "service-defaults caller",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn what_apply_has_written_is_as_it_was_and_is_taken_out_without_a_rest() {
    for share in shares(&weir()) {
        let new = share.with(None, false).unwrap();
        assert_eq!(new.outcome, Outcome::Created);
        let stands = answered(&new.entry.unwrap());
        let again = share.with(Some(&stands), false).unwrap();
        assert_eq!((again.outcome, again.changes), (Outcome::Same, vec![]));
        let gone = share.without(Some(&stands), false).unwrap();
        assert_eq!((gone.outcome, gone.entry), (Outcome::Removed, None));
        assert_eq!(share.without(None, false).unwrap().outcome, Outcome::Same);
    }
}

#[test]
fn what_others_have_in_an_entry_stays_and_weirs_extensions_come_last() {
    let theirs = json!({"Name": "builtin/ext-authz", "Arguments": {"X": 1}});
    let stands = json!({
        "Kind": "service-defaults", "Name": "caller", "Protocol": "http2", "MaxInboundConnections": 7,
        "Meta": {"team": "a"}, "EnvoyExtensions": [theirs],
        "UpstreamConfig": {
            "Defaults": {"ConnectTimeoutMs": 5},
            "Overrides": [{"Name": "other", "ConnectTimeoutMs": 6},
                          {"Name": "rules", "Limits": {"MaxConnections": 3}},
                          {"Name": "rules", "Peer": "far", "EnvoyClusterJSON": "{}"}],
        },
    });
    let share = caller(&weir());
    let new = share.with(Some(&stands), false).unwrap();
    assert_eq!(new.outcome, Outcome::Changed);
    let expected = [
        "EnvoyExtensions: builtin/lua: added",
        "EnvoyExtensions: builtin/wasm: added",
        "override of rules: added",
        "override of weir-control: added",
    ];
    assert_eq!(new.changes, expected);
    let entry = new.entry.unwrap();
    let extensions = entry["EnvoyExtensions"].as_array().unwrap();
    let order: Vec<_> = extensions.iter().map(|one| &one["Name"]).collect();
    assert_eq!(order, ["builtin/ext-authz", "builtin/wasm", "builtin/lua"]);
    assert_eq!(extensions[0], theirs);
    let overrides = entry["UpstreamConfig"]["Overrides"].as_array().unwrap();
    assert_eq!(overrides[1]["Limits"]["MaxConnections"], 3);
    assert!(overrides[1]["EnvoyClusterJSON"].is_string());
    assert_eq!(overrides[2]["EnvoyClusterJSON"], "{}", "a peer's");
    // An extension that comes later moves before Weir's.
    let mut stands_then = answered(&entry);
    let list = stands_then["EnvoyExtensions"].as_array_mut().unwrap();
    list.push(json!({"Name": "builtin/otel-access-logging"}));
    let again = share.with(Some(&stands_then), false).unwrap();
    assert_eq!(again.changes, ["EnvoyExtensions: Weir's come last"]);
    let last = &again.entry.unwrap()["EnvoyExtensions"][3];
    assert_eq!(last["Name"], "builtin/lua");
    // All of it goes again, and nothing else.
    let gone = share.without(Some(&answered(&entry)), false).unwrap();
    assert_eq!(gone.outcome, Outcome::Changed);
    assert!(says_the_same(&gone.entry.unwrap(), &answered(&stands)));
}

#[test]
fn what_a_hand_has_changed_is_refused_and_replaced_where_that_is_said() {
    let share = caller(&weir());
    let mut stands = written(&weir());
    let cluster = &mut stands["UpstreamConfig"]["Overrides"][0]["EnvoyClusterJSON"];
    let text = cluster.as_str().unwrap();
    *cluster = text
        .replace("\"connect_timeout\": \"1s\"", "\"connect_timeout\": \"3s\"")
        .into();
    let said = reasons(share.with(Some(&stands), false));
    assert!(
        said.contains("override of rules") && said.contains("connect_timeout \"3s\" → \"1s\""),
        "{said}"
    );
    assert!(reasons(share.without(Some(&stands), false)).contains("--adopt"));
    assert_eq!(
        share.with(Some(&stands), true).unwrap().entry,
        Some(written(&weir()))
    );
    // A cluster of somebody's own, in an entry that Weir has never seen.
    let own = json!({"UpstreamConfig": {"Overrides": [{"Name": "rules", "EnvoyClusterJSON": "{\"name\": \"x\"}"}]}});
    assert!(reasons(share.with(Some(&own), false)).contains("override of rules"));
}

#[test]
fn what_was_filled_in_by_hand_and_says_the_same_becomes_weirs() {
    let mut stands = written(&weir());
    stands["Meta"] = Value::Null;
    let share = caller(&weir());
    let new = share.with(Some(&stands), false).unwrap();
    assert_eq!((new.outcome, new.changes), (Outcome::Changed, vec![]));
    assert!(new.entry.unwrap()["Meta"]["weir-parts"].is_string());
    assert!(reasons(share.without(Some(&stands), false)).contains("builtin/wasm"));
}

#[test]
fn another_wish_replaces_what_apply_wrote_before() {
    let two = Weir {
        services: names(["rules", "search"]),
        ..weir()
    };
    let one = Weir {
        settings: json!({"debug": true}),
        ..weir()
    };
    let new = caller(&one).with(Some(&written(&two)), false).unwrap();
    let said = new.changes.join("; ");
    assert!(said.contains("debug false → true"), "{said}");
    assert!(said.contains("override of search: taken out"), "{said}");
    assert!(says_the_same(&new.entry.unwrap(), &written(&one)));
}

#[test]
fn settings_of_a_cluster_stand_by_its_service() {
    let settings =
        json!({"trust": "any", "clusters": {"rules": {"key_separator": ","}}, "debug": null});
    let configuration = Weir { settings, ..weir() }.configuration(&datacenter());
    let expected = json!({
        "control_cluster": "weir-control.default.dc1.internal.t.consul", "trust": "any",
        "clusters": {"rules.default.dc1.internal.t.consul": {"table": "rules", "key_separator": ","}},
    });
    assert_eq!(configuration, expected);
}

#[test]
fn a_protocol_that_is_another_is_refused_and_one_of_requests_will_do_for_callers() {
    let with = |name: &str, protocol: &str| {
        let stands = json!({"Kind": "service-defaults", "Name": name, "Protocol": protocol});
        share(&weir(), Kind::Defaults, name).with(Some(&stands), false)
    };
    for (name, bad) in [
        ("rules", "tcp"),
        ("rules", "grpc"),
        ("weir-control", "http"),
        ("caller", "tcp"),
    ] {
        let said = reasons(with(name, bad));
        assert!(said.contains(&format!("Protocol is {bad:?}")), "{said}");
    }
    for (name, good) in [
        ("rules", "http"),
        ("weir-control", "grpc"),
        ("caller", "grpc"),
    ] {
        let entry = with(name, good).unwrap().entry.unwrap();
        assert_eq!(
            (&entry["Protocol"], &entry["Meta"]["weir-protocol"]),
            (&json!(good), &Value::Null)
        );
    }
}

#[test]
fn intentions_of_others_stay_and_one_against_a_caller_is_refused() {
    let share = share(&weir(), Kind::Intentions, "rules");
    let with = |source: Value| {
        let other = json!({"Name": "other", "Action": "deny"});
        let stands =
            json!({"Kind": "service-intentions", "Name": "rules", "Sources": [other, source]});
        share.with(Some(&stands), false)
    };
    let outcome = |source| with(source).unwrap().outcome;
    assert_eq!(
        outcome(json!({"Name": "*", "Action": "allow"})),
        Outcome::Changed
    );
    assert_eq!(
        outcome(json!({"Name": "caller", "Action": "allow"})),
        Outcome::Same
    );
    let permissions = json!([{"Action": "allow", "HTTP": {"PathPrefix": "/"}}]);
    assert_eq!(
        outcome(json!({"Name": "caller", "Permissions": permissions})),
        Outcome::Same
    );
    let of_peer = json!({"Name": "caller", "Peer": "far", "Action": "deny"});
    assert_eq!(outcome(of_peer), Outcome::Changed);
    assert!(reasons(with(json!({"Name": "caller", "Action": "deny"}))).contains("deny"));
    // What was there before is nobody's to take out.
    let theirs = json!({"Sources": [{"Name": "caller", "Action": "allow"}]});
    assert_eq!(
        share.without(Some(&theirs), false).unwrap().outcome,
        Outcome::Same
    );
    assert!(!Share::serves_others(Some(&theirs)));
    let ours = share.with(None, false).unwrap().entry;
    assert!(Share::serves_others(ours.as_ref()));
}

#[test]
fn a_static_cluster_needs_no_service_and_a_remote_module_its_checksum() {
    let outside = Weir {
        control: Control::Cluster("weir-control-static".into()),
        ..weir()
    };
    assert_eq!(shares(&outside).len(), 3);
    let remote = |sha256: &str| Weir {
        module: Module::Remote {
            service: "files".into(),
            url: "http://files/weir.wasm".into(),
            sha256: sha256.into(),
        },
        ..weir()
    };
    let entry = written(&remote(&"a".repeat(64)));
    let code = entry.pointer("/EnvoyExtensions/0/Arguments/PluginConfig/VmConfig/Code/Remote");
    assert_eq!(code.unwrap()["HttpURI"]["Service"]["Name"], "files");
    let bad = remote("abc").shares(&datacenter());
    assert_eq!(bad, Err(Mistake::Checksum("abc".into())));
}

#[test]
fn names_that_are_none_and_wishes_without_any_are_refused() {
    let said = |weir: Weir| weir.shares(&datacenter()).unwrap_err();
    let names_of = |callers| Weir { callers, ..weir() };
    assert_eq!(said(names_of(names([]))), Mistake::Nobody("callers"));
    for bad in ["", "a b", "a/b", "*"] {
        assert_eq!(said(names_of(names([bad]))), Mistake::Name(bad.into()));
    }
    let settings = Weir {
        settings: json!([]),
        ..weir()
    };
    assert_eq!(said(settings), Mistake::Settings);
}

#[test]
fn a_service_that_calls_itself_has_one_entry() {
    let both = Weir {
        callers: names(["rules"]),
        ..weir()
    };
    let share = share(&both, Kind::Defaults, "rules");
    assert_eq!((share.protocol, share.calls), (Some("http"), true));
    assert_eq!(shares(&both).len(), 4);
}

#[test]
fn a_protocol_stays_while_sidecars_of_the_service_choose_or_others_reach_it() {
    // The service calls another one by another command.
    let chain = Weir {
        services: names(["search"]),
        callers: names(["rules"]),
        ..weir()
    };
    let own = share(&weir(), Kind::Defaults, "rules");
    let stands = own.with(None, false).unwrap().entry.unwrap();
    let calls = share(&chain, Kind::Defaults, "rules");
    let stands = calls.with(Some(&stands), false).unwrap().entry.unwrap();
    let kept = own.without(Some(&stands), false).unwrap();
    assert_eq!(kept.outcome, Outcome::Same);
    let last = calls.without(Some(&stands), false).unwrap();
    assert_eq!(last.outcome, Outcome::Removed);
    // Where others reach it, its own part as a caller goes alone.
    let reached = Share {
        reached: true,
        ..calls
    };
    let entry = reached.without(Some(&stands), false).unwrap().entry;
    let entry = entry.unwrap();
    assert_eq!(entry["Protocol"], "http");
    assert_eq!(entry["EnvoyExtensions"], json!([]));
    assert_eq!(
        own.without(Some(&entry), false).unwrap().outcome,
        Outcome::Removed
    );
}

#[test]
fn intentions_with_more_than_sources_are_not_deleted_with_the_last_one() {
    let share = share(&weir(), Kind::Intentions, "rules");
    let mut stands = share.with(None, false).unwrap().entry.unwrap();
    stands["Meta"] = json!({"weir-x": "1"});
    let gone = |stands: &Value, adopt| share.without(Some(stands), adopt);
    assert_eq!(gone(&stands, false).unwrap().outcome, Outcome::Removed);
    stands["Meta"] = json!({"team": "a"});
    stands["JWT"] = json!({"Providers": [{"Name": "okta"}]});
    let said = reasons(gone(&stands, false));
    assert!(said.contains("(JWT, Meta)"), "{said}");
    assert_eq!(gone(&stands, true).unwrap().outcome, Outcome::Removed);
    // Beside another source all of it stays.
    let sources = stands["Sources"].as_array_mut().unwrap();
    sources.push(json!({"Name": "other", "Action": "allow"}));
    let left = gone(&stands, false).unwrap().entry.unwrap();
    assert_eq!(
        (&left["JWT"], &left["Meta"]),
        (&stands["JWT"], &stands["Meta"])
    );
}

#[test]
fn a_caller_that_chooses_for_another_service_too_keeps_its_filter() {
    let two = Weir {
        services: names(["rules", "search"]),
        ..weir()
    };
    let stands = written(&two);
    let said = reasons(caller(&weir()).without(Some(&stands), false));
    assert!(
        said.contains("caller also chooses for search: name it too"),
        "{said}"
    );
    let gone = caller(&two).without(Some(&stands), false).unwrap();
    assert_eq!(gone.outcome, Outcome::Removed);
    let other = Weir {
        control: Control::Service("another".into()),
        ..two
    };
    let said = reasons(caller(&other).without(Some(&stands), false));
    assert!(
        said.contains("--control-service") && !said.contains("chooses for"),
        "{said}"
    );
}
