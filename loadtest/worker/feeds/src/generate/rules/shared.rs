// SPDX-License-Identifier: Apache-2.0
//! What all channels of a shop do first: put its items in order.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::super::draw::Draw;
use super::super::item::Shop;
use super::{act, among, combine, compare, field, operator, remove, split, test, text};

/// The first rule of Listing 1, then some of a shop's usual cleaning.
pub(super) fn operators(shop: &Shop, draw: &mut Draw) -> Vec<Value> {
    let pool = pool(shop);
    let count = draw.random_range(2..=pool.len());
    let mut operators = vec![without_price()];
    operators.extend(pool.sample(draw, count).cloned());
    operators
}

/// The same and one rule more.
pub(super) fn variant(operators: &[Value]) -> Vec<Value> {
    let more = operator(
        "Only new items",
        &[compare("condition", "is_not_equal", "new")],
        &[remove("all")],
    );
    operators.iter().cloned().chain([more]).collect()
}

fn without_price() -> Value {
    let zero = compare("price", "is_less_equal", 0);
    let condition = json!({"field": "price", "filter": "is_empty", "children": [zero]});
    operator(
        "Exclude items without valid price",
        &[condition],
        &[remove("all")],
    )
}

fn pool(shop: &Shop) -> Vec<Value> {
    let rare = shop.brands.iter().rev().take(3);
    let rare: Vec<&str> = rare.map(String::as_str).collect();
    vec![
        operator(
            "Exclude prices that are no numbers",
            &[compare(
                "price",
                "not_matches_regex",
                r"^\s*[0-9]+(\.[0-9]+)?\s*$",
            )],
            &[remove("all")],
        ),
        operator(
            "Tidy titles",
            &[],
            &[
                act(
                    "title",
                    "replace",
                    json!({"search": r"\s+", "replacement": " ", "regex": true}),
                ),
                act("title", "texttransform", "trim"),
            ],
        ),
        operator(
            "No shouting",
            &[compare("title", "matches_regex", "^[^a-z]*[A-Z][^a-z]*$")],
            &[act("title", "texttransform", "titlecase")],
        ),
        operator(
            "Main category",
            &[test("category", "is_not_empty")],
            &[
                act("main_category", "set", field("category")),
                split("main_category", " > ", 0),
            ],
        ),
        operator(
            "No gift cards",
            &[compare("category", "is_equal", "Gift cards")],
            &[remove("all")],
        ),
        operator(
            "Brands we may not sell on",
            &[among("brand", "in_list", &rare)],
            &[remove("all")],
        ),
        operator(
            "Brand from title",
            &[test("brand", "is_empty")],
            &[
                act("brand", "set", field("title")),
                act("brand", "texttransform", "trim"),
                split("brand", " ", 0),
            ],
        ),
        operator(
            "Old items",
            &[compare("updated_at", "is_before", "2023-07-15")],
            &[act("freshness", "set", "old")],
        ),
        operator(
            "Identifier of the brand",
            &[],
            &[combine("mpn", &[field("brand"), text("-"), field("id")])],
        ),
    ]
}
