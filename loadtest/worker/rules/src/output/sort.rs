// SPDX-License-Identifier: Apache-2.0
//! The order of items.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch, StringArray};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};

use super::Place;
use crate::evaluate::{self, EvaluateError};
use crate::feed::Feed;
use crate::number;
use crate::plan::Key;
use crate::request::{As, Order};
use crate::stop::Stop;

/// Sorts places by `keys`, stably. Items without a key come last in either order, and so do those
/// whose key is to be a number and is none. Arrow's row format makes each item's keys one string of
/// bytes, so that a comparison is one `memcmp` however many keys there are.
pub(super) fn sort(
    order: &mut [Place],
    feed: &Feed,
    keys: &[Key],
    stop: &Stop,
) -> Result<(), EvaluateError> {
    if keys.is_empty() || order.is_empty() {
        return Ok(());
    }
    let names = evaluate::names(feed.schema());
    let converter = RowConverter::new(keys.iter().map(sort_field).collect())?;
    let mut rows = converter.empty_rows(feed.items(), 0);
    let mut starts = Vec::with_capacity(feed.batches().len());
    let _work = stop.work();
    for batch in feed.batches() {
        if stop.border() {
            return Err(EvaluateError::Stopped);
        }
        starts.push(rows.num_rows());
        let columns: Vec<ArrayRef> = keys.iter().map(|key| column(key, batch, &names)).collect();
        converter.append(&mut rows, &columns)?;
    }
    let row = |(batch, row): &Place| rows.row(starts[*batch as usize] + *row as usize);
    order.sort_by(|one, two| row(one).cmp(&row(two)));
    Ok(())
}

fn sort_field(key: &Key) -> SortField {
    let kind = match key.read_as {
        As::Text => DataType::Utf8,
        As::Number => DataType::Float64,
    };
    let options = SortOptions {
        descending: key.order == Order::Descending,
        nulls_first: false,
    };
    SortField::new_with_options(kind, options)
}

fn column(key: &Key, batch: &RecordBatch, names: &HashMap<String, usize>) -> ArrayRef {
    let column = names.get(&*key.field).map(|at| batch.column(*at));
    match (column, key.read_as) {
        (Some(column), As::Text) => Arc::clone(column),
        (Some(column), As::Number) => {
            let texts = column.as_string::<i32>().iter();
            Arc::new(
                texts
                    .map(|text| text.and_then(number::read))
                    .collect::<Float64Array>(),
            )
        }
        (None, As::Text) => Arc::new(StringArray::new_null(batch.num_rows())),
        (None, As::Number) => Arc::new(Float64Array::new_null(batch.num_rows())),
    }
}
