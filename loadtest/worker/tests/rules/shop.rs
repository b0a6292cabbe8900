// SPDX-License-Identifier: Apache-2.0
//! Items and requests.

use serde_json::{Value, json};

/// Listing 1 of document 001, as printed; its project is 12345.
pub(crate) const LISTING_1: &str = include_str!("../../rules/tests/listing/1.json");

/// Table 1 of document 001.
pub(crate) const TABLE_1: &str = r#"{"id":"2","title":"Test shirt","color":"white","stock":"23"}
{"id":"3","title":"T-shirt “Triangle”","color":"blue","stock":"34","price":"15.00"}
{"id":"4","title":"T-shirt “Triangle”","color":"red","stock":"0","price":"15.00"}
{"id":"5","title":"T-shirt “Hexagon”","stock":"78","price":"18.00"}
"#;

/// Table 2, with the field that rules add at the end.
pub(crate) const TABLE_2: &str = r#"{"id":"3","title":"T-shirt “Triangle” Blue","color":"Blue","stock":"34","price":"15.00","availability":"in stock"}
{"id":"4","title":"T-shirt “Triangle” Red","color":"Red","stock":"0","price":"15.00","availability":"out of stock"}
{"id":"5","title":"T-shirt “Hexagon”","stock":"78","price":"18.00","availability":"in stock"}
"#;

/// Listing 1 for another project, at a priority, with these fields of the request changed.
pub(crate) fn job(project: &str, priority: &str, changes: Value) -> String {
    let mut request: Value = serde_json::from_str(LISTING_1).unwrap();
    request["project_id"] = json!(project);
    request["priority"] = json!(priority);
    for (field, value) in changes.as_object().unwrap() {
        request[field] = value.clone();
    }
    request.to_string()
}

/// Listing 1 with so many operators of its own instead, which take their time.
pub(crate) fn laborious(project: &str, operators: usize, timeouts: Value) -> String {
    let longer = json!({"field": "title", "action": "replace",
        "value": {"search": "(s|h)", "replacement": "$1", "regex": true}});
    let changes = json!({
        "shared_operators": [],
        "operators": vec![json!({"actions": vec![longer; 5]}); operators],
        "timeouts": timeouts,
    });
    job(project, "low", changes)
}

/// A request without rules: the items as they are.
pub(crate) fn plain(project: &str) -> String {
    json!({"session_id": "s", "project_id": project}).to_string()
}

/// So many items whose descriptions have so many bytes.
pub(crate) fn items(count: usize, description: usize) -> String {
    let text = "blau ".repeat(description / 5);
    let item = |id: usize| {
        let (price, stock) = (id % 40, id % 3);
        format!(
            r#"{{"id":"{id}","title":"Shirt {}","color":"red","stock":"{stock}","price":"{price}.50","description":"{text}"}}"#,
            id * 7919 % count,
        )
    };
    let lines: Vec<_> = (1..=count).map(item).collect();
    lines.join("\n") + "\n"
}
