// SPDX-License-Identifier: Apache-2.0
//! Random items and random requests.

use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::Item;

/// Columns of the feed.
pub(crate) const COLUMNS: [&str; 4] = ["title", "price", "date", "färbe \"x\""];

/// What rules name: columns, fields that rules may add, and one that nothing has.
const FIELDS: [&str; 6] = ["title", "price", "date", "färbe \"x\"", "new", "newer"];

const TEXTS: [&str; 48] = [
    "",
    " ",
    "a",
    "A",
    "ab",
    "aB",
    "abc",
    " abc\t",
    "Straße",
    "İstanbul",
    "ΣΑΣ",
    "σας",
    "K",
    "ŉ",
    "ﬁn",
    "𝄞 clef",
    "a-b-c",
    "x,y",
    "\"q\"",
    "line\nbreak\r",
    "\\",
    "a b  c",
    "ÉCLAIR au Chocolat",
    "$1",
    "\u{1}",
    "0",
    "-0",
    "1",
    "15",
    "15.00",
    " 7 ",
    "1e3",
    "-2.5",
    "1.005",
    "0.1",
    "nan",
    "inf",
    "1e999",
    "1,5",
    "+3",
    "2024-05-01",
    " 2024-05-02",
    "2024-05-01T23:30:00-02:00",
    "2024-05-02T01:30:00Z",
    "2024-05-02T00:00:00.5Z",
    "2024-05-01t23:30:00-02:00",
    "2024-05-02 01:30:00Z",
    "2023-02-29",
];

fn field() -> impl Strategy<Value = &'static str> {
    select(&FIELDS[..])
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![8 => select(&TEXTS[..]).prop_map(str::to_owned), 1 => "[abAB0-9 .,éß-]{0,6}", 1 => "\\PC{0,3}"]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(Value::from),
        2 => (-3..20_i64).prop_map(Value::from),
        1 => select(vec![1.005, -0.5, 0.0, 7.0, 1e3]).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => scalar(),
        1 => scalar().prop_map(|scalar| json!({"type": "static", "value": scalar})),
        2 => field().prop_map(|field| json!({"type": "field", "value": field})),
    ]
}

pub(crate) fn items() -> impl Strategy<Value = Vec<Item>> {
    let cell = prop_oneof![1 => Just(None), 5 => text().prop_map(Some)];
    let item = prop::collection::vec(cell, COLUMNS.len()).prop_map(|cells| {
        let named = COLUMNS.iter().zip(cells);
        named
            .filter_map(|(name, cell)| Some(((*name).to_owned(), cell?)))
            .collect::<Item>()
    });
    prop::collection::vec(item, 0..20)
}

/// Filter and value; `ignore_case` where it is allowed.
fn test() -> impl Strategy<Value = Value> {
    let patterns: &[&str] = &["^a", "[0-9]+", "b$", "(a)(b)?", "^$", ".", "\\s", "ß|É"];
    let valued = |names: &'static [&str]| {
        (select(names), value())
            .prop_map(|(filter, value)| json!({"filter": filter, "value": value}))
    };
    let case = prop::option::of(any::<bool>());
    let cased = prop_oneof![
        3 => valued(&["is_equal", "is_not_equal", "contains", "not_contains", "starts_with", "ends_with"]),
        1 => (select(&["matches_regex", "not_matches_regex"][..]), select(patterns))
            .prop_map(|(filter, value)| json!({"filter": filter, "value": value})),
        1 => (select(&["in_list", "not_in_list"][..]), prop::collection::vec(scalar(), 0..4))
            .prop_map(|(filter, value)| json!({"filter": filter, "value": value})),
    ];
    let cased = (cased, case).prop_map(|(mut test, case)| {
        if let Some(case) = case {
            test["ignore_case"] = json!(case);
        }
        test
    });
    let dates = select(vec![
        "2024-05-01",
        "2024-05-02",
        "2024-05-02T01:30:00Z",
        "soon",
    ]);
    prop_oneof![
        1 => select(&["is_empty", "is_not_empty"][..]).prop_map(|filter| json!({"filter": filter})),
        4 => cased,
        2 => valued(&["is_greater_than", "is_greater_equal", "is_less_than", "is_less_equal"]),
        1 => valued(&["is_before", "is_after", "is_on"]),
        1 => (select(&["is_before", "is_after", "is_on"][..]), dates)
            .prop_map(|(filter, value)| json!({"filter": filter, "value": value})),
    ]
}

fn node() -> impl Strategy<Value = Value> {
    let leaf = || {
        (field(), test()).prop_map(|(field, mut node)| {
            node["field"] = json!(field);
            node
        })
    };
    leaf().prop_recursive(3, 8, 2, move |inner| {
        (leaf(), prop::collection::vec(inner, 0..3)).prop_map(|(mut node, children)| {
            node["children"] = Value::from(children);
            node
        })
    })
}

/// A node on one field, its value among a few.
pub(crate) fn narrow() -> impl Strategy<Value = Value> {
    let orders = [
        "is_greater_than",
        "is_greater_equal",
        "is_less_than",
        "is_less_equal",
        "is_equal",
        "is_not_equal",
    ];
    let numbers = (
        select(orders.to_vec()),
        select(vec![json!(0), json!(7), json!(15), json!("a")]),
    );
    let texts = (
        select(&["is_equal", "is_not_equal", "contains", "not_contains"][..]),
        select(vec!["a", "15", ""]),
    );
    let test = prop_oneof![
        1 => select(&["is_empty", "is_not_empty"][..]).prop_map(|filter| json!({"filter": filter})),
        3 => numbers.prop_map(|(filter, value)| json!({"filter": filter, "value": value})),
        2 => texts.prop_map(|(filter, value)| json!({"filter": filter, "value": value})),
    ];
    let node = |mut test: Value, children: Vec<Value>| {
        test["field"] = json!("price");
        test["children"] = Value::from(children);
        test
    };
    let child = test.prop_map(move |test| node(test, Vec::new())).boxed();
    let children = prop_oneof![3 => Just(Vec::new()).boxed(), 1 => prop::collection::vec(child.clone(), 1..3).boxed()];
    (child, children).prop_map(move |(test, children)| node(test, children))
}

fn calculation() -> impl Strategy<Value = Value> {
    let operation = select(&["add", "subtract", "multiply", "divide"][..]);
    let amount = prop_oneof![
        select(vec![
            json!(0),
            json!(1),
            json!(-2.5),
            json!(1.21),
            json!("0.1"),
            json!(1e300)
        ]),
        field().prop_map(|field| json!({"type": "field", "value": field})),
    ];
    let decimals = || prop::option::of(0..4_usize);
    prop_oneof![
        3 => (operation, amount, decimals()).prop_map(|(operation, value, decimals)| {
            json!({"operation": operation, "value": value, "decimals": decimals})
        }),
        1 => decimals().prop_map(|decimals| json!({"operation": "round", "decimals": decimals})),
    ]
}

fn replacing() -> impl Strategy<Value = Value> {
    let searches = text().prop_filter("a text to replace", |text| !text.is_empty());
    let plain = (searches, text())
        .prop_map(|(search, replacement)| json!({"search": search, "replacement": replacement}));
    let pair = select(vec![
        ("(a)(b)?", "${2}-$1"),
        ("[0-9]+", "<$0>"),
        ("(?P<x>\\s)", "${x}${x}"),
        ("x*", "$$"),
    ]);
    let regex = pair.prop_map(|(search, replacement)| json!({"search": search, "replacement": replacement, "regex": true}));
    prop_oneof![2 => plain, 1 => regex]
}

fn looking_up() -> impl Strategy<Value = Value> {
    let table = prop::collection::btree_map(text(), scalar(), 0..5);
    (table, prop::option::of(scalar())).prop_map(|(table, default)| match default {
        Some(default) => json!({"table": table, "default": default}),
        None => json!({"table": table}),
    })
}

fn action() -> impl Strategy<Value = Value> {
    let cases = select(&["capitalize", "lowercase", "uppercase", "titlecase", "trim"][..]);
    let split = (
        text().prop_filter("a separator", |text| !text.is_empty()),
        0..3_usize,
    );
    let change = prop_oneof![
        1 => Just(json!({"action": "remove"})),
        3 => value().prop_map(|value| json!({"action": "set", "value": value})),
        3 => cases.prop_map(|case| json!({"action": "texttransform", "value": case})),
        2 => prop::collection::vec(value(), 1..4).prop_map(|value| json!({"action": "combine", "value": value})),
        3 => calculation().prop_map(|value| json!({"action": "number", "value": value})),
        1 => split.prop_map(|(separator, index)| {
            json!({"action": "split", "value": {"separator": separator, "index": index}})
        }),
        2 => replacing().prop_map(|value| json!({"action": "replace", "value": value})),
        2 => looking_up().prop_map(|value| json!({"action": "lookup", "value": value})),
    ];
    let change = (field(), change).prop_map(|(field, mut action)| {
        action["field"] = json!(field);
        action
    });
    prop_oneof![20 => change, 1 => Just(json!({"field": "all", "action": "remove"}))]
}

pub(crate) fn operators(count: Range<usize>) -> impl Strategy<Value = Value> {
    let nodes = prop::collection::vec(node(), 0..3);
    let (actions, otherwise) = (
        prop::collection::vec(action(), 0..4),
        prop::collection::vec(action(), 0..2),
    );
    let operator = (nodes, actions, otherwise).prop_map(|(condition, actions, otherwise)| {
        json!({"condition": condition, "actions": actions, "else_actions": otherwise})
    });
    prop::collection::vec(operator, count).prop_map(Value::from)
}

fn fields(count: Range<usize>) -> impl Strategy<Value = Vec<&'static str>> {
    let all: Vec<&str> = FIELDS.into_iter().chain(["nothing"]).collect();
    (Just(all).prop_shuffle(), count).prop_map(|(mut all, count)| {
        all.truncate(count);
        all
    })
}

pub(crate) fn request() -> impl Strategy<Value = Value> {
    let orders = prop::option::of(select(&["ascending", "descending"][..]));
    let kinds = prop::option::of(select(&["text", "number"][..]));
    let key = (field(), orders, kinds).prop_map(|(field, order, kind)| {
        let mut key = json!({"field": field});
        if let Some(order) = order {
            key["order"] = json!(order);
        }
        if let Some(kind) = kind {
            key["as"] = json!(kind);
        }
        key
    });
    let search = (
        select(vec!["a", "", "É", "1", "ß", "2024"]),
        prop::option::of(fields(0..3)),
    );
    let search = search.prop_map(|(text, fields)| json!({"text": text, "fields": fields}));
    (
        operators(0..3),
        operators(0..4),
        prop::collection::vec(key, 0..3),
        prop::option::weighted(0.3, search),
        prop::option::weighted(0.4, fields(0..5)),
        fields(0..3),
    )
        .prop_map(|(shared, own, sort, search, fields, omit)| {
            json!({
                "session_id": "s", "project_id": "p", "shared_operators": shared, "operators": own,
                "sort": sort, "search": search, "fields": fields, "omit": omit,
            })
        })
}
