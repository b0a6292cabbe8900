// SPDX-License-Identifier: Apache-2.0

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float64Array, Int64Array, LargeStringArray, ListArray, StringArray, StringViewArray,
    TimestampMillisecondArray,
};
use arrow::datatypes::{Int8Type, Int32Type};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use weir_rules::Stop;

use super::*;
use crate::limits::FeedLimits;

fn written(columns: Vec<(&str, ArrayRef)>, group_rows: usize) -> Bytes {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let settings = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(settings)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes.into()
}

fn decode_with(bytes: &Bytes, cores: usize, limits: &FeedLimits) -> Result<Feed, Refused> {
    let stop = Stop::default();
    let stop = &stop;
    decode(
        bytes,
        &Work {
            cores,
            limits,
            stop,
        },
    )
}

fn decoded(bytes: &Bytes) -> Feed {
    decode_with(bytes, 2, &FeedLimits::default()).unwrap()
}

fn too_large(bytes: &Bytes, limits: FeedLimits) -> String {
    match decode_with(bytes, 2, &limits) {
        Err(Refused::TooLarge(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_plain_type_becomes_its_text_and_null_stays_absent() {
    let dictionary: DictionaryArray<Int8Type> = [Some("x"), None, Some("x")].into_iter().collect();
    let decimals = Decimal128Array::from(vec![Some(1500), None, Some(-5)]);
    let columns: Vec<(&str, ArrayRef, [Option<&str>; 3])> = vec![
        (
            "text",
            Arc::new(StringArray::from(vec![Some("é"), None, Some("")])),
            [Some("é"), None, Some("")],
        ),
        (
            "view",
            Arc::new(StringViewArray::from(vec![Some("a"), None, Some("b")])),
            [Some("a"), None, Some("b")],
        ),
        (
            "large",
            Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("b")])),
            [Some("a"), None, Some("b")],
        ),
        (
            "bytes",
            Arc::new(BinaryArray::from(vec![Some(&b"a"[..]), None, Some(b"b")])),
            [Some("a"), None, Some("b")],
        ),
        (
            "dictionary",
            Arc::new(dictionary),
            [Some("x"), None, Some("x")],
        ),
        (
            "whole",
            Arc::new(Int64Array::from(vec![Some(-7), None, Some(0)])),
            [Some("-7"), None, Some("0")],
        ),
        (
            "float",
            Arc::new(Float64Array::from(vec![Some(1.5), None, Some(15.0)])),
            [Some("1.5"), None, Some("15.0")],
        ),
        (
            "decimal",
            Arc::new(decimals.with_precision_and_scale(10, 2).unwrap()),
            [Some("15.00"), None, Some("-0.05")],
        ),
        (
            "flag",
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            [Some("true"), None, Some("false")],
        ),
        (
            "day",
            Arc::new(Date32Array::from(vec![Some(0), None, Some(365)])),
            [Some("1970-01-01"), None, Some("1971-01-01")],
        ),
        (
            "time",
            Arc::new(
                TimestampMillisecondArray::from(vec![Some(1), None, Some(0)]).with_timezone("UTC"),
            ),
            [
                Some("1970-01-01T00:00:00.001Z"),
                None,
                Some("1970-01-01T00:00:00Z"),
            ],
        ),
    ];
    let file = columns
        .iter()
        .map(|(name, column, _)| (*name, Arc::clone(column)));
    let feed = decoded(&written(file.collect(), 1000));
    assert_eq!(feed.items(), 3);
    for (name, _, expected) in columns {
        let column = feed.batches()[0].column_by_name(name).unwrap();
        let found: Vec<Option<&str>> = column.as_string::<i32>().iter().collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_nested_column_is_refused_by_name() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
    match decode_with(
        &written(vec![("tags", Arc::new(list))], 10),
        1,
        &FeedLimits::default(),
    ) {
        Err(Refused::Bad { line: None, reason }) => {
            assert!(
                reason.starts_with("the column \"tags\" is of type List"),
                "{reason}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_by_column() {
    let bytes = BinaryArray::from(vec![&b"a\xff"[..]]);
    match decode_with(
        &written(vec![("raw", Arc::new(bytes))], 10),
        1,
        &FeedLimits::default(),
    ) {
        Err(Refused::Bad { line: None, reason }) => {
            assert!(
                reason.starts_with("the column \"raw\" has no text"),
                "{reason}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_limit_is_its_own_refusal() {
    let text = StringArray::from(vec!["0123456789"; 3000]);
    let columns = ["a", "b", "c"].map(|name| (name, Arc::new(text.clone()) as ArrayRef));
    let file = written(columns.to_vec(), 1000);
    let limits = FeedLimits::default;
    assert_eq!(
        too_large(
            &file,
            FeedLimits {
                max_columns: 2,
                ..limits()
            }
        ),
        "more than 2 different fields"
    );
    assert_eq!(
        too_large(
            &file,
            FeedLimits {
                max_items: 2999,
                ..limits()
            }
        ),
        "more than 2999 items"
    );
    assert_eq!(
        too_large(
            &file,
            FeedLimits {
                max_value_bytes: 9,
                ..limits()
            }
        ),
        "a value of the field \"a\" has more than 9 bytes"
    );
    // The file holds the text once; the feed 9,000 times.
    assert!(file.len() < 10_000);
    let exact = 9000 * (4 + 10) + 9000 / 8;
    assert_eq!(
        too_large(
            &file,
            FeedLimits {
                max_bytes: exact - 1,
                ..limits()
            }
        ),
        format!("the decoded items take more than {} bytes", exact - 1)
    );
    let fits = FeedLimits {
        max_bytes: exact,
        max_columns: 3,
        max_items: 3000,
        max_value_bytes: 10,
    };
    assert_eq!(decode_with(&file, 2, &fits).unwrap().items(), 3000);
}

#[test]
fn a_raised_flag_stops_the_work() {
    let file = written(vec![("a", Arc::new(Int64Array::from(vec![1])))], 10);
    let (limits, stop) = (FeedLimits::default(), Stop::default());
    stop.raise();
    let work = Work {
        cores: 1,
        limits: &limits,
        stop: &stop,
    };
    assert_eq!(decode(&file, &work), Err(Refused::Stopped));
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let text: StringArray = (0..50).map(|at| Some(format!("value {at}"))).collect();
    let file = written(vec![("a", Arc::new(text))], 20);
    for end in 0..file.len() {
        let refused = decode_with(&file.slice(..end), 1, &FeedLimits::default());
        assert!(
            matches!(refused, Err(Refused::Bad { .. })),
            "{end}: {refused:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn rows_come_back_in_order_whatever_the_row_groups_and_cores(
        rows in 0usize..12_000,
        group_rows in prop_oneof![Just(100usize), Just(1000), Just(3000), Just(8192), Just(1 << 20)],
        cores in 2usize..5,
    ) {
        let text: StringArray = (0..rows).map(|at| (at % 7 > 0).then(|| at.to_string())).collect();
        let file = written(vec![("a", Arc::new(text.clone()))], group_rows);
        let feed = decoded(&file);
        prop_assert!(feed == decode_with(&file, 1, &FeedLimits::default()).unwrap());
        prop_assert!(feed == decode_with(&file, cores, &FeedLimits::default()).unwrap());
        prop_assert!(feed.batches().iter().all(|batch| batch.num_rows() <= BATCH_ROWS));
        let found = feed.batches().iter().flat_map(|batch| batch.column(0).as_string::<i32>());
        prop_assert!(found.eq(text.iter()));
    }
}

proptest! {
    #[test]
    fn a_file_with_flipped_bytes_is_refused_or_read_and_never_panics(
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        footer: bool,
    ) {
        let text: StringArray = (0..200).map(|at| Some(format!("value {}", at % 20))).collect();
        let numbers: Int64Array = (0..200).map(Some).collect();
        let file = written(vec![("a", Arc::new(text)), ("b", Arc::new(numbers))], 90);
        let mut file = file.to_vec();
        let start = if footer { file.len() * 2 / 3 } else { 0 };
        for (at, byte) in flips {
            let part = &mut file[start..];
            let at = at.index(part.len());
            part[at] = byte;
        }
        let limits = FeedLimits { max_bytes: 1 << 20, ..FeedLimits::default() };
        if let Ok(feed) = decode_with(&file.into(), 2, &limits) {
            prop_assert!(feed.bytes() < 4 << 20);
        }
    }
}
