// SPDX-License-Identifier: Apache-2.0
//! Which rules are the same work.

use std::collections::HashMap;

use weir_rules::{Limits, Request};

fn id(operators: &str) -> [u8; 16] {
    let body = format!(r#"{{"session_id": "s", "project_id": 1, "operators": {operators}}}"#);
    let request = Request::parse(body.as_bytes(), &Limits::default()).unwrap();
    request.compile(&Limits::default(), true).unwrap().own.id()
}

fn with_node(node: &str) -> String {
    let node = format!(r#"{{"field": "f", {node}}}"#);
    format!(r#"[{{"condition": [{node}], "actions": [{{"field": "all", "action": "remove"}}]}}]"#)
}

fn with_action(action: &str) -> String {
    format!(r#"[{{"actions": [{{"field": "f", {action}}}]}}]"#)
}

#[test]
fn rules_that_differ_in_anything_that_matters_have_other_identities() {
    let nodes = [
        r#""filter": "is_empty""#,
        r#""filter": "is_not_empty""#,
        r#""filter": "is_empty", "children": [{"field": "f", "filter": "is_less_than", "value": 1}]"#,
        r#""filter": "is_empty", "children": [{"field": "g", "filter": "is_less_than", "value": 1}]"#,
        r#""filter": "is_equal", "value": 1"#,
        r#""filter": "is_equal", "value": "1""#,
        r#""filter": "is_equal", "value": "1", "ignore_case": true"#,
        r#""filter": "is_equal", "value": {"type": "field", "value": "1"}"#,
        r#""filter": "is_not_equal", "value": "1""#,
        r#""filter": "contains", "value": "1""#,
        r#""filter": "starts_with", "value": "1""#,
        r#""filter": "ends_with", "value": "1""#,
        r#""filter": "is_less_than", "value": 1"#,
        r#""filter": "is_less_than", "value": 2"#,
        r#""filter": "is_less_than", "value": {"type": "field", "value": "1"}"#,
        r#""filter": "is_less_equal", "value": 1"#,
        r#""filter": "is_greater_than", "value": 1"#,
        r#""filter": "is_greater_equal", "value": 1"#,
        r#""filter": "matches_regex", "value": "1""#,
        r#""filter": "matches_regex", "value": "1", "ignore_case": true"#,
        r#""filter": "in_list", "value": ["1"]"#,
        r#""filter": "in_list", "value": [1]"#,
        r#""filter": "in_list", "value": ["1", "2"]"#,
        r#""filter": "in_list", "value": ["12"]"#,
        r#""filter": "in_list", "value": ["1"], "ignore_case": true"#,
        r#""filter": "is_before", "value": "2024-05-01""#,
        r#""filter": "is_before", "value": "2024-05-01T00:00:00Z""#,
        r#""filter": "is_after", "value": "2024-05-01""#,
        r#""filter": "is_on", "value": "2024-05-01""#,
    ];
    let actions = [
        r#""action": "remove""#,
        r#""action": "set", "value": "a""#,
        r#""action": "set", "value": {"type": "field", "value": "a"}"#,
        r#""action": "set", "value": 1"#,
        r#""action": "set", "value": 1.0"#,
        r#""action": "texttransform", "value": "trim""#,
        r#""action": "texttransform", "value": "lowercase""#,
        r#""action": "combine", "value": ["a"]"#,
        r#""action": "combine", "value": ["a", "b"]"#,
        r#""action": "combine", "value": ["ab"]"#,
        r#""action": "number", "value": {"operation": "add", "value": 1}"#,
        r#""action": "number", "value": {"operation": "add", "value": 2}"#,
        r#""action": "number", "value": {"operation": "add", "value": 1, "decimals": 0}"#,
        r#""action": "number", "value": {"operation": "add", "value": {"type": "field", "value": "a"}}"#,
        r#""action": "number", "value": {"operation": "subtract", "value": 1}"#,
        r#""action": "number", "value": {"operation": "round"}"#,
        r#""action": "number", "value": {"operation": "round", "decimals": 1}"#,
        r#""action": "split", "value": {"separator": ",", "index": 0}"#,
        r#""action": "split", "value": {"separator": ",", "index": 1}"#,
        r#""action": "split", "value": {"separator": ";", "index": 0}"#,
        r#""action": "replace", "value": {"search": "a", "replacement": "b"}"#,
        r#""action": "replace", "value": {"search": "a", "replacement": "c"}"#,
        r#""action": "replace", "value": {"search": "a", "replacement": "b", "regex": true}"#,
        r#""action": "replace", "value": {"search": "a", "replacement": "$0", "regex": true}"#,
        r#""action": "replace", "value": {"search": "a", "replacement": "$$0", "regex": true}"#,
        r#""action": "lookup", "value": {"table": {"a": "b"}}"#,
        r#""action": "lookup", "value": {"table": {"a": "c"}}"#,
        r#""action": "lookup", "value": {"table": {"b": "b"}}"#,
        r#""action": "lookup", "value": {"table": {"a": "b"}, "default": ""}"#,
        r#""action": "lookup", "value": {"table": {"a": "b"}, "default": "b"}"#,
    ];
    let otherwise = r#"[{"condition": [{"field": "f", "filter": "is_empty"}], "else_actions": [{"field": "all", "action": "remove"}]}]"#;
    let mut seen = HashMap::new();
    let all = nodes
        .iter()
        .map(|node| with_node(node))
        .chain(actions.iter().map(|action| with_action(action)));
    for operators in all.chain(["[]".to_owned(), otherwise.to_owned()]) {
        if let Some(other) = seen.insert(id(&operators), operators.clone()) {
            panic!("{operators} has the identity of {other}");
        }
    }
}

#[test]
fn rules_that_do_the_same_have_one_identity() {
    let pairs = [
        (
            with_action(r#""action": "remove""#),
            with_action(r#""action": "remove""#).replacen('{', r#"{"name": "n", "#, 1),
        ),
        (
            with_node(r#""filter": "is_less_than", "value": 1"#),
            with_node(r#""filter": "is_less_than", "value": {"type": "static", "value": "1.0"}"#),
        ),
        (
            with_node(r#""filter": "in_list", "value": ["1", "2", 3, 4]"#),
            with_node(r#""filter": "in_list", "value": [4, "2", 3, "1", 4.0]"#),
        ),
        (
            with_node(r#""filter": "contains", "value": "A", "ignore_case": true"#),
            with_node(r#""filter": "contains", "value": "a", "ignore_case": true"#),
        ),
        (
            with_node(r#""filter": "is_on", "value": "2024-05-01""#),
            with_node(r#""filter": "is_on", "value": " 2024-05-01 ", "children": []"#),
        ),
        (
            with_action(r#""action": "lookup", "value": {"table": {"a": 1, "b": 2}}"#),
            with_action(r#""action": "lookup", "value": {"table": {"b": "2", "a": "1"}}"#),
        ),
        // What cannot hold is nothing, whatever else it says.
        (
            "[]".to_owned(),
            with_node(r#""filter": "in_list", "value": []"#),
        ),
    ];
    for (one, two) in pairs {
        assert_eq!(id(&one), id(&two), "{one} and {two}");
    }
}
