// SPDX-License-Identifier: Apache-2.0
//! How control planes change Envoy's configuration: Istio by merging messages, Envoy Gateway by RFC 6902.

use serde_json::{Value, json};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    (
        "messages_are_merged_as_istio_does",
        &[],
        messages_are_merged,
    ),
    (
        "places_of_a_json_patch_are_found_or_refused",
        &[],
        places_are_found_or_refused,
    ),
];

/// Merges as Go's `proto.Merge` does: scalars are set, messages merged, lists appended. A value of the type `Any` is
/// replaced, also one that a map holds under a key: Istio merges neither in a cluster (`ApplyClusterMerge`).
pub(crate) fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                match into.get_mut(key) {
                    Some(old) if !is_any(value) && !holds_any(value) => merge(old, value),
                    Some(Value::Object(old)) if holds_any(value) => {
                        let Value::Object(value) = value else {
                            continue;
                        };
                        old.extend(value.clone());
                    }
                    _ => {
                        into.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(into), Value::Array(patch)) => into.extend(patch.clone()),
        (into, patch) => *into = patch.clone(),
    }
}

fn is_any(value: &Value) -> bool {
    value.get("@type").is_some()
}

fn holds_any(value: &Value) -> bool {
    matches!(value, Value::Object(map) if map.values().any(is_any))
}

/// Merges what is in two values of the type `Any`, as Istio does for filters (`MergeAnyWithAny`).
#[track_caller]
pub(crate) fn merge_any(into: &mut Value, patch: &Value) {
    assert_eq!(into["@type"], patch["@type"]);
    let (Value::Object(into), Value::Object(patch)) = (into, patch) else {
        panic!("no messages");
    };
    for (key, value) in patch {
        match into.get_mut(key) {
            Some(old) => merge(old, value),
            None => drop(into.insert(key.clone(), value.clone())),
        }
    }
}

/// Carries out an `add` of RFC 6902, section 4.1.
#[track_caller]
pub(crate) fn add(document: &mut Value, path: &str, value: &Value) -> Result<(), String> {
    let (above, last) = path.rsplit_once('/').ok_or("not a pointer")?;
    let above = document
        .pointer_mut(above)
        .ok_or_else(|| format!("there is no {above}"))?;
    match above {
        Value::Object(map) => {
            map.insert(last.replace("~1", "/").replace("~0", "~"), value.clone());
        }
        Value::Array(list) if last == "-" => list.push(value.clone()),
        _ => return Err(format!("nothing can be added at {path}")),
    }
    Ok(())
}

fn messages_are_merged() {
    let mut into =
        json!({ "a": { "x": 1 }, "list": [1], "options": { "k": { "@type": "t", "old": 1 } } });
    let patch = json!({
        "a": { "y": 2 },
        "list": [2],
        "options": { "k": { "@type": "t", "new": 1 } },
        "one": { "@type": "t" },
    });
    merge(&mut into, &patch);
    assert_eq!(
        into,
        json!({
            "a": { "x": 1, "y": 2 },
            "list": [1, 2],
            "options": { "k": { "@type": "t", "new": 1 } },
            "one": { "@type": "t" },
        })
    );
}

fn places_are_found_or_refused() {
    let mut document = json!({ "clusters": [1] });
    add(&mut document, "/clusters/-", &json!(2)).unwrap();
    add(&mut document, "/a~1b", &json!(3)).unwrap();
    assert_eq!(document, json!({ "clusters": [1, 2], "a/b": 3 }));
    let error = add(&mut document, "/cluster/-", &json!(2)).unwrap_err();
    assert!(error.contains("there is no /cluster"), "{error}");
}
