// SPDX-License-Identifier: Apache-2.0
//! What one channel does: bring items into its form.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::super::draw::{Draw, any};
use super::super::item::Shop;
use super::{act, among, combine, compare, field, operator, remove, split, test, text};
use crate::generate::words;

/// One to all but a few of what channels do.
pub(super) fn operators(shop: &Shop, channel: u32, draw: &mut Draw) -> Vec<Value> {
    let mut pool = texts(draw);
    pool.extend(numbers(draw));
    pool.extend(choices(shop, draw));
    let count = draw.random_range(2..=pool.len() - 3);
    let mut operators = vec![availability()];
    operators.extend(pool.sample(draw, count).cloned());
    operators.push(operator(
        "Campaign",
        &[],
        &[act("campaign", "set", format!("channel-{}", channel + 1))],
    ));
    operators
}

/// The second rule of Listing 1.
fn availability() -> Value {
    json!({
        "name": "Set availability",
        "condition": [compare("stock", "is_greater_than", 0)],
        "actions": [act("availability", "set", "in stock")],
        "else_actions": [act("availability", "set", "out of stock")],
    })
}

fn texts(draw: &mut Draw) -> Vec<Value> {
    let adjective = any(words::ADJECTIVES, draw);
    vec![
        // The third rule of Listing 1.
        operator(
            "Add color to product title",
            &[test("color", "is_not_empty")],
            &[
                act("color", "texttransform", "capitalize"),
                combine("title", &[field("title"), text(" "), field("color")]),
            ],
        ),
        operator(
            "Translate colors",
            &[test("color", "is_not_empty")],
            &[act("color", "lookup", colors())],
        ),
        operator(
            "Capitals in categories",
            &[compare("category", "starts_with", "Home")],
            &[act("category", "texttransform", "uppercase")],
        ),
        operator(
            "Arrows to slashes",
            &[],
            &[act(
                "category",
                "replace",
                json!({"search": " > ", "replacement": "/"}),
            )],
        ),
        operator(
            "Label",
            &[json!({
                "field": "title", "filter": "contains", "value": adjective, "ignore_case": true,
                "children": [compare("description", "contains", adjective)],
            })],
            &[act("custom_label_0", "set", adjective)],
        ),
        operator(
            "Secure image links",
            &[compare("image_link", "matches_regex", r"\.jpe?g$")],
            &[act(
                "image_link",
                "replace",
                json!({
                    "search": r"^https?://([^/]+)/", "replacement": "https://images.$1/", "regex": true,
                }),
            )],
        ),
        operator(
            "Short descriptions",
            &[test("description", "is_not_empty")],
            &[split("description", ". ", 0)],
        ),
    ]
}

fn numbers(draw: &mut Draw) -> Vec<Value> {
    let rate = any(&["1.09", "1.19", "1.21", "0.95"], draw);
    let dear = draw.random_range(20..200);
    vec![
        operator(
            "Price of the channel",
            &[compare("price", "is_greater_than", 0)],
            &[act(
                "price",
                "number",
                json!({"operation": "multiply", "value": rate, "decimals": 2}),
            )],
        ),
        operator(
            "Discount",
            &[
                test("sale_price", "is_not_empty"),
                json!({"field": "sale_price", "filter": "is_less_than", "value": field("price")}),
            ],
            &[
                act("discount", "set", field("price")),
                act(
                    "discount",
                    "number",
                    json!({"operation": "subtract", "value": field("sale_price"), "decimals": 2}),
                ),
            ],
        ),
        operator(
            "Free shipping",
            &[compare("price", "is_greater_equal", dear)],
            &[act("shipping", "set", "0.00 EUR")],
        ),
        operator(
            "Currency",
            &[test("price", "is_not_empty")],
            &[combine("price_text", &[field("price"), " EUR".into()])],
        ),
    ]
}

fn choices(shop: &Shop, draw: &mut Draw) -> Vec<Value> {
    let best: Vec<&str> = shop.brands.iter().take(3).map(String::as_str).collect();
    let cheap = draw.random_range(1..6);
    vec![
        operator(
            "Sold out",
            &[compare("stock", "is_less_equal", 0)],
            &[remove("all")],
        ),
        operator(
            "Best brands",
            &[among("brand", "in_list", &best)],
            &[act("custom_label_1", "set", "best")],
        ),
        operator(
            "Too cheap to advertise",
            &[
                compare("price", "is_less_than", cheap),
                compare("brand", "is_not_equal", best[0]),
            ],
            &[remove("all")],
        ),
        operator(
            "No second hand",
            &[among("condition", "in_list", &["used", "refurbished"])],
            &[remove("all")],
        ),
        operator(
            "No codes, no sale",
            &[test("gtin", "is_empty")],
            &[remove("all")],
        ),
        operator(
            "New in",
            &[compare("updated_at", "is_after", "2024-05-01T00:00:00Z")],
            &[act("custom_label_2", "set", "new in")],
        ),
        operator("Not for this channel", &[], &[remove("shipping_weight")]),
    ]
}

/// Some colours in German; others stay as they are not.
fn colors() -> Value {
    json!({
        "table": {
            "black": "schwarz", "white": "weiß", "blue": "blau", "grey": "grau", "red": "rot",
            "green": "grün", "brown": "braun", "yellow": "gelb",
        },
        "default": "bunt",
    })
}
