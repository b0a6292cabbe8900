// SPDX-License-Identifier: Apache-2.0
//! The engine gives what a plain evaluator gives that goes item by item through maps of text.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use proptest::prelude::*;
use serde_json::{Value, json};
use weir_rules::{BadRequest, Feed, Limits, Plan, Request, Stop};

mod action;
mod filter;
mod output;
mod strategy;

/// Field names to texts; a field that is absent has no entry.
type Item = BTreeMap<String, String>;

/// Items after the operators, one by one.
fn operate(operators: &Value, item: &Item) -> Option<Item> {
    let mut item = item.clone();
    for operator in operators.as_array().into_iter().flatten() {
        let nodes = operator["condition"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let list = if nodes.iter().all(|node| filter::node_holds(node, &item)) {
            "actions"
        } else {
            "else_actions"
        };
        for action in operator[list].as_array().into_iter().flatten() {
            if !action::act(action, &mut item) {
                return None;
            }
        }
    }
    Some(item)
}

fn expected(request: &Value, columns: &[String], items: &[Item]) -> String {
    let both = |item: &Item| {
        operate(
            &request["operators"],
            &operate(&request["shared_operators"], item)?,
        )
    };
    let mut columns = columns.to_vec();
    for list in ["shared_operators", "operators"] {
        action::add_created(&request[list], &mut columns);
    }
    output::write(request, &columns, items.iter().filter_map(both).collect())
}

fn feed(columns: &[String], items: &[Item], rows: usize) -> Feed {
    let schema = Feed::schema_of(columns.iter().map(String::as_str));
    let batch = |items: &[Item]| {
        let column = |name: &String| -> ArrayRef {
            Arc::new(
                items
                    .iter()
                    .map(|item| item.get(name).cloned())
                    .collect::<StringArray>(),
            )
        };
        RecordBatch::try_new(Arc::clone(&schema), columns.iter().map(column).collect()).unwrap()
    };
    Feed::new(Arc::clone(&schema), items.chunks(rows).map(batch).collect()).unwrap()
}

fn actual(plan: &Plan, feed: &Feed, cores: usize) -> String {
    let (limits, stop) = (Limits::default(), Stop::default());
    let shared = plan.shared.apply(feed, cores, &limits, &stop).unwrap();
    let own = plan.own.apply(&shared, cores, &limits, &stop).unwrap();
    assert!(
        own.batches().iter().all(|batch| batch.num_rows() > 0),
        "an empty batch is left"
    );
    let mut written = Vec::new();
    let mut sink = |chunk: bytes::Bytes| {
        written.extend_from_slice(&chunk);
        Ok(())
    };
    plan.output
        .write(&own, cores, &limits, &stop, &mut sink)
        .unwrap();
    String::from_utf8(written).unwrap()
}

fn try_compile(request: &Value, optimise: bool) -> Result<Plan, BadRequest> {
    let limits = Limits::default();
    Request::parse(request.to_string().as_bytes(), &limits)?.compile(&limits, optimise)
}

fn compile(request: &Value, optimise: bool) -> Plan {
    try_compile(request, optimise).unwrap_or_else(|error| panic!("{error}\n{request:#}"))
}

fn columns() -> Vec<String> {
    strategy::COLUMNS
        .iter()
        .map(|name| (*name).to_owned())
        .collect()
}

/// A request with shared operators alone, that shows the columns.
fn shared(operators: &Value) -> Value {
    json!({"session_id": "", "project_id": 1, "shared_operators": operators, "format": "csv"})
}

/// Every text, number and boolean within.
fn leaves(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(entries) => entries.iter_mut().flat_map(leaves).collect(),
        Value::Object(members) => members.values_mut().flat_map(leaves).collect(),
        Value::Null => Vec::new(),
        leaf => vec![leaf],
    }
}

fn changed(leaf: &Value) -> Value {
    match leaf {
        Value::Bool(yes) => json!(!yes),
        Value::Number(number) => json!(number.as_f64().unwrap_or_default() + 1.0),
        other => json!(format!("{}a", other.as_str().unwrap_or_default())),
    }
}

proptest! {
    #[test]
    fn engine_and_reference_write_the_same_bytes(
        request in strategy::request(),
        items in strategy::items(),
        rows in 1..8_usize,
    ) {
        let columns = columns();
        let feed = feed(&columns, &items, rows);
        let expected = expected(&request, &columns, &items);
        for optimise in [false, true] {
            let plan = compile(&request, optimise);
            for cores in [1, 3] {
                let actual = actual(&plan, &feed, cores);
                prop_assert_eq!(&actual, &expected, "optimise {}, cores {}, {:#}", optimise, cores, &request);
            }
        }
    }

    /// Formats other than NDJSON show what the optimiser must not change: the columns.
    #[test]
    fn optimising_changes_no_format(
        request in strategy::request(),
        items in strategy::items(),
        format in prop::sample::select(vec!["json", "csv"]),
    ) {
        let mut request = request;
        request["format"] = json!(format);
        let columns = columns();
        let feed = feed(&columns, &items, 3);
        let written = actual(&compile(&request, false), &feed, 1);
        prop_assert_eq!(actual(&compile(&request, true), &feed, 2), written);
    }

    #[test]
    fn names_do_not_change_the_identity_of_rules(request in strategy::request(), optimise: bool) {
        let mut named = request.clone();
        for list in ["shared_operators", "operators"] {
            for operator in named[list].as_array_mut().into_iter().flatten() {
                operator["name"] = json!("another name");
            }
        }
        let (one, two) = (compile(&request, optimise), compile(&named, optimise));
        prop_assert_eq!((one.shared.id(), one.own.id()), (two.shared.id(), two.own.id()));
    }

    /// Tests on one field often contradict or repeat each other, which the optimiser looks for.
    #[test]
    fn tests_on_one_field_hold_for_the_items_of_the_reference(
        nodes in prop::collection::vec(strategy::narrow(), 1..4),
        items in strategy::items(),
    ) {
        let set = json!([{"field": "new", "action": "set", "value": "held"}]);
        let mut request = shared(&json!([{"condition": nodes, "actions": set}]));
        request["format"] = json!("ndjson");
        let feed = feed(&columns(), &items, 100);
        let expected = expected(&request, &columns(), &items);
        for optimise in [false, true] {
            prop_assert_eq!(&actual(&compile(&request, optimise), &feed, 1), &expected, "{:#}", &request);
        }
    }

    /// Rules of one identity do the same to any items: whatever differs in effect differs in identity.
    #[test]
    fn what_changes_a_result_changes_the_identity(
        operators in strategy::operators(1..3),
        leaf: prop::sample::Index,
        items in strategy::items(),
        optimise: bool,
    ) {
        let mut other = operators.clone();
        let mut leaves = leaves(&mut other);
        prop_assume!(!leaves.is_empty());
        let leaf = leaf.index(leaves.len());
        *leaves[leaf] = changed(leaves[leaf]);
        // Most names of filters and actions cannot be changed into another.
        let Ok(other) = try_compile(&shared(&other), optimise) else { return Ok(()) };
        let one = compile(&shared(&operators), optimise);
        let feed = feed(&columns(), &items, 100);
        if actual(&one, &feed, 1) != actual(&other, &feed, 1) {
            prop_assert_ne!(one.shared.id(), other.shared.id());
        }
        prop_assert_eq!(one.shared.id(), compile(&shared(&operators), optimise).shared.id());
    }

    #[test]
    fn empty_rules_change_nothing(
        operators in strategy::operators(0..2),
        items in strategy::items(),
        optimise: bool,
    ) {
        let (some, none) = (compile(&shared(&operators), optimise), compile(&shared(&json!([])), optimise));
        prop_assert!(none.shared.is_empty());
        let feed = feed(&columns(), &items, 100);
        if some.shared.is_empty() {
            prop_assert_eq!(actual(&some, &feed, 1), actual(&none, &feed, 1));
        }
    }
}
