// SPDX-License-Identifier: Apache-2.0
//! The rules of one shop's channels: complete request bodies, without a priority.

mod own;
mod presentation;
mod shared;

use rand::RngExt;
use serde_json::{Value, json};

use super::draw::Draw;
use super::item::Shop;

/// Shops whose channels do not all have the same shared rules: then a host computes, and caches, two
/// results of shared rules for them.
const TWO_VARIANTS: f64 = 0.25;

/// A body for each channel.
pub(super) fn of_project(shop: &Shop, channels: u32, draw: &mut Draw) -> Vec<Value> {
    let usual = shared::operators(shop, draw);
    let other = draw
        .random_bool(TWO_VARIANTS)
        .then(|| shared::variant(&usual));
    let body = |channel: u32| {
        let second = channel % 2 == 1;
        let shared = other.as_ref().filter(|_| second).unwrap_or(&usual);
        body(shop, shared, channel, draw)
    };
    (0..channels).map(body).collect()
}

fn body(shop: &Shop, shared: &[Value], channel: u32, draw: &mut Draw) -> Value {
    let mut body = json!({
        "session_id": session(draw),
        "project_id": shop.project,
        "timeouts": {"queue_seconds": 15, "evaluate_seconds": 120, "stream_seconds": 300},
        "shared_operators": shared,
        "operators": own::operators(shop, channel, draw),
    });
    for (name, value) in presentation::fields(draw) {
        body[name] = value;
    }
    body
}

/// In the shape of a random UUID (RFC 9562, version 4).
fn session(draw: &mut Draw) -> String {
    let bits: u128 = draw.random();
    let bits = bits & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

fn operator(name: &str, condition: &[Value], actions: &[Value]) -> Value {
    json!({"name": name, "condition": condition, "actions": actions})
}

/// A filter without a value.
fn test(field: &str, filter: &str) -> Value {
    json!({"field": field, "filter": filter})
}

/// A filter and its value, as Listing 1 of document 001 writes it.
fn compare(field: &str, filter: &str, value: impl Into<Value>) -> Value {
    let value: Value = value.into();
    json!({"field": field, "filter": filter, "value": {"type": "static", "value": value}})
}

/// A filter on a list.
fn among(field: &str, filter: &str, values: &[&str]) -> Value {
    json!({"field": field, "filter": filter, "value": values})
}

fn act(field: &str, action: &str, value: impl Into<Value>) -> Value {
    let value: Value = value.into();
    json!({"field": field, "action": action, "value": value})
}

/// The part of a field between two separators.
fn split(field: &str, separator: &str, index: u32) -> Value {
    let value = json!({"separator": separator, "index": index});
    act(field, "split", value)
}

/// A field of several others' values and texts.
fn combine(field: &str, parts: &[Value]) -> Value {
    act(field, "combine", json!(parts))
}

fn remove(field: &str) -> Value {
    json!({"field": field, "action": "remove"})
}

fn field(name: &str) -> Value {
    json!({"type": "field", "value": name})
}

fn text(text: &str) -> Value {
    json!({"type": "static", "value": text})
}
