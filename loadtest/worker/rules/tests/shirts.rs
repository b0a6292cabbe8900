// SPDX-License-Identifier: Apache-2.0
//! The example of document 001, section 3.1: Listing 1 turns table 1 into table 2.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use weir_rules::{Feed, Limits, Request, Stop};

/// As printed.
const LISTING_1: &[u8] = include_bytes!("listing/1.json");

const FIELDS: [&str; 5] = ["id", "title", "color", "stock", "price"];

#[rustfmt::skip]
const TABLE_1: [[Option<&str>; 5]; 4] = [
    [Some("2"), Some("Test shirt"), Some("white"), Some("23"), None],
    [Some("3"), Some("T-shirt “Triangle”"), Some("blue"), Some("34"), Some("15.00")],
    [Some("4"), Some("T-shirt “Triangle”"), Some("red"), Some("0"), Some("15.00")],
    [Some("5"), Some("T-shirt “Hexagon”"), None, Some("78"), Some("18.00")],
];

const TABLE_2: &str = r#"{"id":"3","title":"T-shirt “Triangle” Blue","color":"Blue","stock":"34","availability":"in stock","price":"15.00"}
{"id":"4","title":"T-shirt “Triangle” Red","color":"Red","stock":"0","availability":"out of stock","price":"15.00"}
{"id":"5","title":"T-shirt “Hexagon”","stock":"78","availability":"in stock","price":"18.00"}
"#;

fn table_1() -> Feed {
    let schema = Feed::schema_of(FIELDS);
    let column = |at: usize| -> ArrayRef {
        Arc::new(TABLE_1.iter().map(|row| row[at]).collect::<StringArray>())
    };
    let batch = RecordBatch::try_new(Arc::clone(&schema), (0..5).map(column).collect()).unwrap();
    Feed::new(schema, vec![batch]).unwrap()
}

#[test]
fn listing_1_makes_table_2_of_table_1() {
    let (limits, stop) = (Limits::default(), Stop::default());
    // The table has `availability` before `price`; the engine appends new fields unless told.
    let listing = String::from_utf8(LISTING_1.to_vec()).unwrap();
    let order = r#"{"fields": ["id", "title", "color", "stock", "availability", "price"],"#;
    for optimise in [false, true] {
        let request = Request::parse(listing.replacen('{', order, 1).as_bytes(), &limits).unwrap();
        let plan = request.compile(&limits, optimise).unwrap();
        let shared = plan.shared.apply(&table_1(), 1, &limits, &stop).unwrap();
        let own = plan.own.apply(&shared, 1, &limits, &stop).unwrap();
        let mut written = Vec::new();
        let mut sink = |chunk: bytes::Bytes| {
            written.extend_from_slice(&chunk);
            Ok(())
        };
        plan.output
            .write(&own, 1, &limits, &stop, &mut sink)
            .unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), TABLE_2);
    }
}

#[test]
fn listing_1_parses_as_printed() {
    let request = Request::parse(LISTING_1, &Limits::default()).unwrap();
    assert_eq!(request.session_id, "5531f48d-74f0-4b52-8203-470d5ed8aa90");
    assert_eq!(
        (request.project_id.as_str(), request.priority.as_deref()),
        ("12345", Some("high"))
    );
    assert_eq!(request.timeouts, weir_rules::Timeouts::default());
}
