// SPDX-License-Identifier: Apache-2.0
//! What evaluation refuses, and how answers are given.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use weir_rules::{EvaluateError, Feed, Limits, Plan, Request, SinkClosed, Stop};

fn compile(more: &str) -> Plan {
    let body = format!(r#"{{"session_id": "s", "project_id": 1, {more}}}"#);
    let request = Request::parse(body.as_bytes(), &Limits::default()).unwrap();
    request.compile(&Limits::default(), false).unwrap()
}

fn one(action: &str) -> Plan {
    compile(&format!(
        r#""operators": [{{"name": "grow", "actions": [{action}]}}]"#
    ))
}

/// Items with a field `a`, in batches of `rows`.
fn feed(values: &[Option<&str>], rows: usize) -> Feed {
    let schema = Feed::schema_of(["a"]);
    let batch = |values: &[Option<&str>]| {
        let column: ArrayRef = Arc::new(values.iter().collect::<StringArray>());
        RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap()
    };
    Feed::new(
        Arc::clone(&schema),
        values.chunks(rows).map(batch).collect(),
    )
    .unwrap()
}

fn write(
    plan: &Plan,
    feed: &Feed,
    cores: usize,
    limits: &Limits,
) -> Result<Vec<Bytes>, EvaluateError> {
    let mut chunks = Vec::new();
    let mut sink = |chunk| {
        chunks.push(chunk);
        Ok(())
    };
    plan.output
        .write(feed, cores, limits, &Stop::default(), &mut sink)?;
    Ok(chunks)
}

fn text(plan: &Plan, feed: &Feed) -> String {
    let chunks = write(plan, feed, 1, &Limits::default()).unwrap();
    String::from_utf8(chunks.concat()).unwrap()
}

#[test]
fn a_value_that_grows_over_the_limit_names_its_operator() {
    let limits = Limits {
        value_bytes: 8,
        ..Limits::default()
    };
    let items = feed(&[Some("aaaa")], 1);
    let growing = [
        r#"{"field": "a", "action": "combine", "value": [{"type": "field", "value": "a"}, "bbbbb"]}"#,
        r#"{"field": "a", "action": "replace", "value": {"search": "a", "replacement": "bbb"}}"#,
        r#"{"field": "a", "action": "replace", "value": {"search": "(a+)", "replacement": "$1$1$1", "regex": true}}"#,
        r#"{"field": "a", "action": "number", "value": {"operation": "add", "value": 1e300}}"#,
    ];
    for action in growing {
        let items = if action.contains("number") {
            feed(&[Some("1")], 1)
        } else {
            items.clone()
        };
        let error = one(action)
            .own
            .apply(&items, 1, &limits, &Stop::default())
            .unwrap_err();
        assert!(
            matches!(error, EvaluateError::ValueTooLong { .. }),
            "{action}: {error}"
        );
        assert!(
            error
                .to_string()
                .starts_with(r#"operators[0] "grow": a value of `a` grows over 8 bytes"#),
            "{error}"
        );
    }
    // A value that came long may stay, and be copied.
    let long = feed(&[Some("long before rules")], 1);
    let copy = r#"{"field": "b", "action": "set", "value": {"type": "field", "value": "a"}}"#;
    let upper = r#"{"field": "a", "action": "texttransform", "value": "uppercase"}"#;
    for action in [copy, upper] {
        assert!(
            one(action)
                .own
                .apply(&long, 1, &limits, &Stop::default())
                .is_ok(),
            "{action}"
        );
    }
}

#[test]
fn the_values_of_removed_items_do_not_count() {
    let limits = Limits {
        value_bytes: 4,
        ..Limits::default()
    };
    let plan = compile(
        r#""operators": [
            {"condition": [{"field": "a", "filter": "is_equal", "value": "long"}], "actions": [{"field": "all", "action": "remove"}]},
            {"actions": [{"field": "a", "action": "combine", "value": [{"type": "field", "value": "a"}, "x"]}]}
        ]"#,
    );
    let items = feed(&[Some("a"), Some("b"), Some("long"), None], 4);
    let result = plan
        .own
        .apply(&items, 1, &limits, &Stop::default())
        .unwrap();
    assert_eq!(
        text(&plan, &result),
        "{\"a\":\"ax\"}\n{\"a\":\"bx\"}\n{\"a\":\"x\"}\n"
    );
}

#[test]
fn feeds_over_a_limit_are_refused() {
    let items = feed(&[Some("a"); 40], 10);
    let plan = one(r#"{"field": "b", "action": "set", "value": "twelve bytes"}"#);
    let apply = |limits: &Limits, cores| plan.own.apply(&items, cores, limits, &Stop::default());
    for cores in [1, 3] {
        let error = apply(
            &Limits {
                columns: 1,
                ..Limits::default()
            },
            cores,
        )
        .unwrap_err();
        assert!(
            matches!(
                error,
                EvaluateError::TooManyColumns {
                    columns: 2,
                    limit: 1
                }
            ),
            "{error}"
        );
        let error = apply(
            &Limits {
                feed_bytes: 500,
                ..Limits::default()
            },
            cores,
        )
        .unwrap_err();
        assert!(matches!(error, EvaluateError::FeedTooLarge(500)), "{error}");
        assert_eq!(
            apply(
                &Limits {
                    feed_bytes: 2000,
                    ..Limits::default()
                },
                cores
            )
            .unwrap()
            .items(),
            40
        );
    }
}

#[test]
fn a_batch_counts_while_it_grows() {
    let value = "x".repeat(1000);
    let plan = compile(&format!(
        r#""operators": [{{"actions": [
            {{"field": "b", "action": "set", "value": "{value}"}},
            {{"field": "all", "action": "remove"}}
        ]}}]"#
    ));
    let items = feed(&[Some("a"); 40], 40);
    let apply = |feed_bytes| {
        let limits = Limits {
            feed_bytes,
            ..Limits::default()
        };
        plan.own.apply(&items, 1, &limits, &Stop::default())
    };
    assert!(matches!(
        apply(20_000),
        Err(EvaluateError::FeedTooLarge(20_000))
    ));
    assert_eq!(apply(50_000).unwrap().items(), 0);
}

#[test]
fn a_feed_that_is_not_text_is_refused() {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, true)]));
    let column: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
    let numbers = Feed::new(schema, vec![batch]).unwrap();
    let plan = one(r#"{"field": "a", "action": "remove"}"#);
    let error = plan
        .own
        .apply(&numbers, 1, &Limits::default(), &Stop::default())
        .unwrap_err();
    assert!(
        matches!(error, EvaluateError::NotText(ref name) if name == "n"),
        "{error}"
    );
    assert!(matches!(
        write(&plan, &numbers, 1, &Limits::default()),
        Err(EvaluateError::NotText(_))
    ));
}

#[test]
fn a_raised_stop_ends_everything() {
    let items = feed(&[Some("a"); 40], 10);
    let (stop, limits) = (Stop::default(), Limits::default());
    stop.raise();
    let set = r#""operators": [{"actions": [{"field": "a", "action": "set", "value": 1}]}]"#;
    for presentation in [
        "",
        r#", "sort": [{"field": "a"}]"#,
        r#", "search": {"text": "a"}"#,
    ] {
        let plan = compile(&format!("{set}{presentation}"));
        for cores in [1, 3] {
            let applied = plan.own.apply(&items, cores, &limits, &stop);
            assert!(matches!(applied, Err(EvaluateError::Stopped)));
            let written = plan
                .output
                .write(&items, cores, &limits, &stop, &mut |_| Ok(()));
            assert!(matches!(written, Err(EvaluateError::Stopped)));
        }
    }
}

#[test]
fn a_closed_sink_ends_writing() {
    let value = "x".repeat(1000);
    let items = feed(&vec![Some(value.as_str()); 20_000], 8192);
    for cores in [1, 3] {
        let mut given = 0;
        let mut sink = |_| {
            given += 1;
            if given == 3 { Err(SinkClosed) } else { Ok(()) }
        };
        let plan = compile(r#""format": "json""#);
        let written = plan.output.write(
            &items,
            cores,
            &Limits::default(),
            &Stop::default(),
            &mut sink,
        );
        assert!(
            matches!(written, Err(EvaluateError::ClientGone)),
            "{cores} cores"
        );
        assert_eq!(given, 3);
    }
}

#[test]
fn answers_come_in_chunks_of_about_64_kib_and_only_to_the_limit() {
    let value = "x".repeat(200);
    let items = feed(&vec![Some(value.as_str()); 5000], 8192);
    let plan = compile(r#""cache": false"#);
    let whole = write(&plan, &items, 1, &Limits::default())
        .unwrap()
        .concat();
    assert_eq!(whole.len(), 5000 * (200 + 9));
    for cores in [1, 2, 3] {
        let chunks = write(&plan, &items, cores, &Limits::default()).unwrap();
        let (last, others) = chunks.split_last().unwrap();
        assert!(
            others
                .iter()
                .all(|chunk| (64 << 10..192 << 10).contains(&chunk.len()))
                && last.len() < 128 << 10
        );
        assert_eq!(chunks.concat(), whole);
        let limits = Limits {
            output_bytes: whole.len() as u64,
            ..Limits::default()
        };
        assert!(write(&plan, &items, cores, &limits).is_ok());
        let limits = Limits {
            output_bytes: whole.len() as u64 - 1,
            ..Limits::default()
        };
        assert!(matches!(
            write(&plan, &items, cores, &limits),
            Err(EvaluateError::OutputTooLarge(_))
        ));
    }
}

#[test]
fn each_format_has_its_type_and_its_form() {
    let items = feed(&[Some("plain"), None, Some("say \"hi\",\r\nor\u{1}")], 2);
    let forms = [
        (
            "ndjson",
            "application/x-ndjson",
            "{\"a\":\"plain\"}\n{}\n{\"a\":\"say \\\"hi\\\",\\r\\nor\\u0001\"}\n",
        ),
        (
            "json",
            "application/json",
            "[{\"a\":\"plain\"},{},{\"a\":\"say \\\"hi\\\",\\r\\nor\\u0001\"}]",
        ),
        (
            "csv",
            "text/csv; charset=utf-8",
            "a,\"b,c\"\r\nplain,\r\n,\r\n\"say \"\"hi\"\",\r\nor\u{1}\",\r\n",
        ),
    ];
    for (format, kind, expected) in forms {
        let plan = compile(&format!(
            r#""format": "{format}", "fields": ["a", "b,c", "d"], "omit": ["d"]"#
        ));
        assert_eq!(plan.output.content_type(), kind);
        assert_eq!(text(&plan, &items), expected);
    }
    let none = feed(&[], 1);
    let empty = [("ndjson", ""), ("json", "[]"), ("csv", "a\r\n")];
    for (format, expected) in empty {
        assert_eq!(
            text(&compile(&format!(r#""format": "{format}""#)), &none),
            expected
        );
    }
}

#[test]
fn numbers_of_a_request_keep_their_literal() {
    let plan = one(
        r#"{"field": "a", "action": "combine", "value": [15.00, " ", -0, " ", 1E5, " ", true]}"#,
    );
    let result = plan
        .own
        .apply(&feed(&[None], 1), 1, &Limits::default(), &Stop::default())
        .unwrap();
    assert_eq!(text(&plan, &result), "{\"a\":\"15.00 -0 1E5 true\"}\n");
}

#[test]
fn columns_that_no_rule_changes_are_shared() {
    let items = feed(&[Some("a"); 20], 10);
    let plan = one(r#"{"field": "b", "action": "set", "value": 1}"#);
    let result = plan
        .own
        .apply(&items, 2, &Limits::default(), &Stop::default())
        .unwrap();
    for (before, after) in items.batches().iter().zip(result.batches()) {
        assert!(Arc::ptr_eq(before.column(0), after.column(0)));
    }
}
