// SPDX-License-Identifier: Apache-2.0

use arrow::array::{Array, AsArray};
use proptest::prelude::*;
use serde_json::Value;
use weir_rules::{Feed, Stop};

use super::*;
use crate::limits::FeedLimits;

fn decode_with(text: &[u8], cores: usize, limits: &FeedLimits) -> Result<Feed, Refused> {
    let stop = Stop::default();
    let stop = &stop;
    decode(
        text,
        &Work {
            cores,
            limits,
            stop,
        },
    )
}

fn decoded(text: &str) -> Feed {
    decode_with(text.as_bytes(), 1, &FeedLimits::default()).unwrap()
}

/// The rows, absent values left out.
fn rows(feed: &Feed) -> Vec<Vec<(String, String)>> {
    let mut rows = Vec::new();
    for batch in feed.batches() {
        for row in 0..batch.num_rows() {
            let cells = feed.schema().fields().iter().zip(batch.columns());
            let cells = cells.filter(|(_, column)| column.is_valid(row));
            let cell = |(field, column): (&Arc<arrow::datatypes::Field>, &ArrayRef)| {
                let text = column.as_string::<i32>().value(row);
                (field.name().clone(), text.to_owned())
            };
            rows.push(cells.map(cell).collect());
        }
    }
    rows
}

fn names(feed: &Feed) -> Vec<&str> {
    let fields = feed.schema().fields().iter();
    fields.map(|field| field.name().as_str()).collect()
}

fn refused_line(text: &[u8]) -> (Option<u64>, String) {
    match decode_with(text, 2, &FeedLimits::default()) {
        Err(Refused::Bad { line, reason }) => (line, reason),
        other => panic!("{other:?}"),
    }
}

fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    pairs.into_iter().map(owned).collect()
}

#[test]
fn every_kind_of_value_becomes_its_text_or_nothing() {
    let feed = decoded(
        r#"{"a":15.00,"b":true,"c":null,"d":"","e":{"x": [1, "é"]},"f":[1e400],"g":"\u00e9\n\"\\","h":-0}"#,
    );
    let expected = pairs([
        ("a", "15.00"),
        ("b", "true"),
        ("d", ""),
        ("e", r#"{"x": [1, "é"]}"#),
        ("f", "[1e400]"),
        ("g", "é\n\"\\"),
        ("h", "-0"),
    ]);
    assert_eq!(rows(&feed), [expected]);
    assert_eq!(names(&feed), ["a", "b", "c", "d", "e", "f", "g", "h"]);
}

#[test]
fn columns_are_in_order_of_first_appearance_and_items_may_lack_them() {
    let feed = decoded("{\"b\":1}\n{\"a\":2,\"b\":3}\n{}\n{\"c\":4,\"a\":5}\n");
    assert_eq!(names(&feed), ["b", "a", "c"]);
    let expected = [
        pairs([("b", "1")]),
        pairs([("b", "3"), ("a", "2")]),
        pairs([]),
        pairs([("a", "5"), ("c", "4")]),
    ];
    assert_eq!(rows(&feed), expected);
}

#[test]
fn a_mark_blank_lines_carriage_returns_and_a_missing_last_newline_are_accepted() {
    let feed = decoded("\u{feff}{\"a\":1}\r\n\r\n  \n{\"a\":2}\r\n{\"a\":3}");
    assert_eq!(
        rows(&feed),
        [[1], [2], [3]].map(|[n]| pairs([("a", &*n.to_string())]))
    );
    assert_eq!(decoded("").items(), 0);
    assert_eq!(decoded("\n\n").items(), 0);
    assert_eq!(decoded("{}\n{}").items(), 2);
}

#[test]
fn a_bad_line_is_named_by_its_number() {
    for (line, reason) in [
        (&b"{\"a\":1"[..], "EOF"),
        (b"[1]", "one JSON object a line"),
        (b"7", "one JSON object a line"),
        (b"{\"a\":1} {\"a\":2}", "trailing characters"),
        (
            b"{\"a\":1,\"b\":2,\"a\":3}",
            "the field \"a\" is there twice",
        ),
        (b"{\"a\":\"\\ud800\"}", "hex escape"),
        (b"{\"a\":\"x\xff\"}", "byte 0xff is not UTF-8"),
        (b"{\"a\":\"x\ty\"}", "control character"),
        (b"{a:1}", "key must be a string"),
        (b"{\"a\":01}", "invalid number"),
        (b"\xef\xbb\xbf{}", "expected value"),
    ] {
        for before in [0, 1, 3, BATCH_ROWS - 1, BATCH_ROWS, 2 * BATCH_ROWS + 5] {
            let mut text = b"\n".to_vec();
            text.extend(b"{\"a\":1}\n".repeat(before));
            text.extend_from_slice(line);
            text.extend_from_slice(b"\n{\"a\":1}\n");
            let (at, why) = refused_line(&text);
            assert_eq!(at, Some(before as u64 + 2));
            assert!(why.contains(reason), "{why}");
        }
    }
}

#[test]
fn each_limit_is_its_own_refusal() {
    let limits = FeedLimits {
        max_bytes: 1000,
        max_columns: 3,
        max_items: 20,
        max_value_bytes: 50,
    };
    let refused = |text: String| match decode_with(text.as_bytes(), 2, &limits) {
        Err(Refused::TooLarge(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let long = "x".repeat(51);
    assert_eq!(refused("{}\n".repeat(21)), "more than 20 items");
    assert_eq!(
        refused("{\"a\":1,\"b\":1,\"c\":1,\"d\":1}".into()),
        "line 1: more than 3 different fields"
    );
    assert_eq!(
        refused(format!("\n{{\"a\":\"{long}\"}}")),
        "line 2: a value of the field \"a\" has more than 50 bytes"
    );
    assert_eq!(
        refused(format!("{{\"{long}\":1}}")),
        "line 1: a field's name has more than 50 bytes"
    );
    let row = format!(
        "{{\"a\":\"{0}\",\"b\":\"{0}\",\"c\":\"{0}\"}}\n",
        &long[1..]
    );
    assert_eq!(
        refused(row.repeat(7)),
        "line 7: the decoded items take more than 1000 bytes"
    );
    assert!(decode_with(row.repeat(6).as_bytes(), 2, &limits).is_ok());
}

#[test]
fn fields_that_differ_between_segments_count_together_before_memory_is_spent() {
    let limits = FeedLimits {
        max_columns: 10,
        ..FeedLimits::default()
    };
    let row = |at: usize| format!("{{\"f{}\":1}}\n", at / BATCH_ROWS);
    let text: String = (0..11 * BATCH_ROWS).map(row).collect();
    let refused = decode_with(text.as_bytes(), 2, &limits);
    assert_eq!(
        refused,
        Err(Refused::TooLarge("more than 10 different fields".into()))
    );

    // 11 columns of 11 segments: a cell is 4 bytes and a bit, absent or not.
    let cells = (11 * 11 * BATCH_ROWS * 33 / 8 + 11 * BATCH_ROWS) as u64;
    let mut limits = FeedLimits {
        max_bytes: cells,
        ..FeedLimits::default()
    };
    assert_eq!(
        decode_with(text.as_bytes(), 2, &limits).unwrap().items(),
        11 * BATCH_ROWS
    );
    limits.max_bytes -= 1;
    let refused = decode_with(text.as_bytes(), 2, &limits);
    assert!(matches!(refused, Err(Refused::TooLarge(_))), "{refused:?}");
}

#[test]
fn a_million_fields_in_one_item_are_refused() {
    let fields: Vec<String> = (0..1_000_000).map(|at| format!("\"f{at}\":1")).collect();
    let text = format!("{{{}}}", fields.join(","));
    let refused = decode_with(text.as_bytes(), 1, &FeedLimits::default());
    let expected = Refused::TooLarge("line 1: more than 10000 different fields".into());
    assert_eq!(refused, Err(expected));
}

#[test]
fn deep_nesting_is_text_like_any_other() {
    let deep = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    let feed = decoded(&format!("{{\"a\":{deep}}}"));
    assert_eq!(rows(&feed), [pairs([("a", &*deep)])]);
}

#[test]
fn a_raised_flag_stops_the_work() {
    let (limits, stop) = (FeedLimits::default(), Stop::default());
    stop.raise();
    let work = Work {
        cores: 2,
        limits: &limits,
        stop: &stop,
    };
    assert_eq!(decode(b"{}\n", &work), Err(Refused::Stopped));
}

/// A value, how it may be written, and the text that it shall become.
fn value() -> impl Strategy<Value = (String, Option<String>)> {
    prop_oneof![
        any::<String>().prop_map(|text| (Value::from(text.clone()).to_string(), Some(text))),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,4})?([eE][-+]?[0-9]{1,3})?"
            .prop_map(|text| (text.clone(), Some(text))),
        Just(("null".to_owned(), None)),
        Just(("false".to_owned(), Some("false".to_owned()))),
        "[a-z]{0,3}".prop_map(|text| {
            let json = format!("[{{ \"k\" : \"{text}\" }},[]]");
            (json.clone(), Some(json))
        }),
    ]
}

type Row = Vec<(String, (String, Option<String>))>;

fn row() -> impl Strategy<Value = Row> {
    let names = proptest::sample::subsequence(vec!["a", "b", "ç\"\n", "", "e", "f"], 0..6);
    let names = names.prop_shuffle();
    names.prop_flat_map(|names| {
        let values = proptest::collection::vec(value(), names.len());
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        values.prop_map(move |values| names.iter().cloned().zip(values).collect())
    })
}

fn line(row: &Row) -> String {
    let field = |(name, (json, _)): &(String, (String, _))| {
        format!("{}: {json}", Value::from(name.as_str()))
    };
    format!(
        "{{{}}}",
        row.iter().map(field).collect::<Vec<_>>().join(" , ")
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn decoding_gives_back_the_rows_that_were_written(
        written in proptest::collection::vec(row(), 1..40),
        copies in prop_oneof![15 => Just(1usize), 1 => 200usize..400],
        newline in prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n")],
    ) {
        let copies = copies.min(20_000 / written.len());
        let lines: Vec<String> = written.iter().map(line).collect();
        let text = (lines.join(newline) + newline).repeat(copies);
        let one = decode_with(text.as_bytes(), 1, &FeedLimits::default()).unwrap();
        let four = decode_with(text.as_bytes(), 4, &FeedLimits::default()).unwrap();
        prop_assert!(one == four);
        prop_assert!(one.batches().iter().all(|batch| batch.num_rows() <= BATCH_ROWS));

        let mut order: Vec<&str> = Vec::new();
        for (name, _) in written.iter().flatten() {
            if !order.contains(&name.as_str()) {
                order.push(name);
            }
        }
        prop_assert_eq!(names(&one), order.clone());
        let expected: Vec<Vec<(String, String)>> = written.iter().map(|row| {
            let cell = |name: &&str| {
                let (_, (_, text)) = row.iter().find(|(other, _)| other == name)?;
                Some(((*name).to_owned(), text.clone()?))
            };
            order.iter().filter_map(cell).collect()
        }).collect();
        let found = rows(&one);
        prop_assert_eq!(found.len(), expected.len() * copies);
        for (at, row) in found.iter().enumerate() {
            prop_assert_eq!(row, &expected[at % expected.len()]);
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic_and_give_the_same_on_any_number_of_cores(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            "[{}\\[\\]\":,0-9a-z\\\\\n\r -]{0,200}".prop_map(String::into_bytes),
        ],
    ) {
        let one = decode_with(&bytes, 1, &FeedLimits::default());
        let message = |refused: &Refused| format!("{refused:?}");
        prop_assert!(!one.as_ref().is_err_and(|refused| message(refused).contains("cannot be read")));
        prop_assert!(one == decode_with(&bytes, 4, &FeedLimits::default()));
    }

    #[test]
    fn a_flipped_byte_never_panics(at in 0usize..180, byte: u8) {
        let mut bytes = b"{\"title\":\"a \\u00e9 \\\" b\",\"price\":15.00,\"tags\":[1,{\"x\":null}]}\n".repeat(3);
        bytes[at] = byte;
        let one = decode_with(&bytes, 1, &FeedLimits::default());
        let message = |refused: &Refused| format!("{refused:?}");
        prop_assert!(!one.as_ref().is_err_and(|refused| message(refused).contains("cannot be read")));
    }
}
