// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use serde_json::{Value, json};
use weir_body::Body;
use weir_body::value::{MAX_BYTES, Pointer};

use super::{names, read};

fn at(pointer: &str, document: &str, chunks: &[usize]) -> Option<String> {
    let pointer = Pointer::parse(pointer).unwrap_or_else(|| panic!("{pointer}"));
    let body = read(Body::value(&pointer), document.as_bytes(), chunks);
    names(&body).pop()
}

#[test]
fn the_value_at_a_pointer_is_the_name() {
    let document = json!({
        "session": {"id": "s-1", "a/b": {"m~n": 7}, "ids": [[1], {"x": true}, "last"]},
        "id": "other", "empty": "", "none": null,
    });
    for (pointer, value) in [
        ("/session/id", Some("s-1")),
        ("/session/a~1b/m~0n", Some("7")),
        ("/session/ids/0/0", Some("1")),
        ("/session/ids/1/x", Some("true")),
        ("/session/ids/2", Some("last")),
        ("/none", None),
        ("/empty", None),
        ("/session", None),
        ("/session/ids", None),
        ("/session/ids/3", None),
        ("/session/ids/00", None),
        ("/session/ids/x", None),
        ("/id/x", None),
        ("/sessio", None),
        ("/session/id/", None),
    ] {
        let found = at(pointer, &document.to_string(), &[]);
        assert_eq!(found.as_deref(), value, "{pointer}");
    }
}

#[test]
fn what_comes_behind_the_value_is_not_looked_at_and_what_comes_before_is() {
    let found = |document: &str| at("/a", document, &[]);
    assert_eq!(found(r#"{"a": "x", this is no JSON"#).as_deref(), Some("x"));
    assert_eq!(found(r#"{this is no JSON, "a": "x"}"#), None);
    assert_eq!(found(r#"{"a": "x"#), None, "it is not all here");
}

#[test]
fn a_value_of_more_than_a_kibibyte_is_no_key() {
    for (length, is_key) in [(MAX_BYTES, true), (MAX_BYTES + 1, false)] {
        let document = json!({"a": "x".repeat(length)}).to_string();
        assert_eq!(at("/a", &document, &[100]).is_some(), is_key);
    }
}

#[test]
fn a_pointer_is_checked() {
    for bad in ["", "a", "/a~", "/a~2", &"/a".repeat(17)] {
        assert_eq!(Pointer::parse(bad), None, "{bad}");
    }
    for good in ["/", "/a", "/~0~1", &"/a".repeat(16)] {
        assert!(Pointer::parse(good).is_some(), "{good}");
    }
}

fn document() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<u16>().prop_map(Value::from),
        "[a-c~/\"\\\\é]{0,4}".prop_map(Value::from),
        Just(Value::Null),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        let members = prop::collection::hash_map("[ab0~/]{0,2}", inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            members.prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_pointer_into_any_document_finds_what_serde_json_finds(
        document in document(),
        steps in prop::collection::vec("[ab]|[0-3]|~0|~1|", 1..4),
        chunks in prop::collection::vec(0_usize..5, 0..20),
    ) {
        let pointer = format!("/{}", steps.join("/"));
        let expected = match document.pointer(&pointer) {
            Some(Value::String(text)) if text.is_empty() => None,
            Some(Value::String(text)) => Some(text.clone()),
            None | Some(Value::Array(_) | Value::Object(_) | Value::Null) => None,
            Some(other) => Some(other.to_string()),
        };
        prop_assert_eq!(at(&pointer, &document.to_string(), &chunks), expected);
    }
}
