// SPDX-License-Identifier: Apache-2.0
//! How some channels, and people who look at a preview, want to see the result.

use rand::RngExt;
use serde_json::{Value, json};

use super::super::draw::{Draw, any};
use crate::generate::words;

/// Fields of a request body: each on some bodies only.
pub(super) fn fields(draw: &mut Draw) -> Vec<(&'static str, Value)> {
    let mut fields = Vec::new();
    if draw.random_bool(0.4) {
        fields.push(("format", any(&["json", "csv"], draw).into()));
    }
    if draw.random_bool(0.25) {
        fields.push(("sort", sort(draw)));
    }
    if draw.random_bool(0.1) {
        fields.push(("search", search(draw)));
    }
    if draw.random_bool(0.3) {
        let named = [
            "id",
            "title",
            "brand",
            "price",
            "availability",
            "link",
            "image_link",
        ];
        fields.push(("fields", json!(named)));
    } else if draw.random_bool(0.3) {
        fields.push(("omit", json!(["description", "gtin"])));
    }
    fields
}

fn sort(draw: &mut Draw) -> Value {
    match draw.random_bool(0.5) {
        true => json!([{"field": "price", "order": "descending", "as": "number"}]),
        false => json!([{"field": "brand"}, {"field": "title"}]),
    }
}

/// Among the commoner nouns, so that something is found.
fn search(draw: &mut Draw) -> Value {
    json!({"text": any(&words::NOUNS[..5], draw), "fields": ["title"]})
}
