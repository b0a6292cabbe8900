// SPDX-License-Identifier: Apache-2.0
//! The columns of one batch while operators change them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::FilterBuilder;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::lower::{TooLong, lower};
use crate::date::Moment;
use crate::number;
use crate::stop::Stop;

/// One batch. What was read out of the text of a column is kept until the column changes, since
/// rules often test one field several times.
pub(crate) struct Items<'a> {
    columns: Vec<ArrayRef>,
    names: &'a HashMap<String, usize>,
    rows: usize,
    /// Items not removed; `None` while that is all of them.
    alive: Option<BooleanBuffer>,
    numbers: HashMap<usize, Arc<Float64Array>>,
    moments: HashMap<usize, Arc<[Option<Moment>]>>,
    lowered: HashMap<usize, Arc<StringArray>>,
    /// Of all columns.
    bytes: u64,
    stop: &'a Stop,
}

impl<'a> Items<'a> {
    /// The items of `batch`, with empty columns for what `schema` has and the batch has not.
    pub(crate) fn new(
        batch: &RecordBatch,
        schema: &SchemaRef,
        names: &'a HashMap<String, usize>,
        stop: &'a Stop,
    ) -> Self {
        let rows = batch.num_rows();
        let mut columns = batch.columns().to_vec();
        if columns.len() < schema.fields().len() {
            let absent: ArrayRef = Arc::new(StringArray::new_null(rows));
            columns.resize(schema.fields().len(), absent);
        }
        Self {
            bytes: columns.iter().map(column_bytes).sum(),
            stop,
            columns,
            names,
            rows,
            alive: None,
            numbers: HashMap::new(),
            moments: HashMap::new(),
            lowered: HashMap::new(),
        }
    }

    /// Bytes that the items take, removed ones included until they are dropped.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether nobody wants the result any more.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.raised()
    }

    /// Number of items, removed ones included until they are dropped.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether all items are removed.
    pub(crate) fn is_empty(&self) -> bool {
        self.alive
            .as_ref()
            .map_or(self.rows == 0, |alive| !alive.has_true())
    }

    /// The items among `mask` that are not removed.
    pub(crate) fn living(&self, mask: BooleanBuffer) -> BooleanBuffer {
        match &self.alive {
            Some(alive) => &mask & alive,
            None => mask,
        }
    }

    /// Where the column of a field is; `None` if no item has the field.
    pub(crate) fn find(&self, field: &str) -> Option<usize> {
        self.names.get(field).copied()
    }

    pub(crate) fn text(&self, column: usize) -> &StringArray {
        self.columns[column].as_string()
    }

    pub(crate) fn column(&self, column: usize) -> &ArrayRef {
        &self.columns[column]
    }

    pub(crate) fn replace(&mut self, column: usize, values: ArrayRef) {
        self.bytes = self.bytes - column_bytes(&self.columns[column]) + column_bytes(&values);
        self.columns[column] = values;
        self.numbers.remove(&column);
        self.moments.remove(&column);
        self.lowered.remove(&column);
    }

    /// The numbers of a column, null where its text is none.
    pub(crate) fn numbers(&mut self, column: usize) -> Arc<Float64Array> {
        let texts = self.columns[column].as_string::<i32>();
        let read = || {
            Arc::new(
                texts
                    .iter()
                    .map(|text| text.and_then(number::read))
                    .collect(),
            )
        };
        Arc::clone(self.numbers.entry(column).or_insert_with(read))
    }

    /// The dates of a column.
    pub(crate) fn moments(&mut self, column: usize) -> Arc<[Option<Moment>]> {
        let texts = self.columns[column].as_string::<i32>();
        let read = || {
            texts
                .iter()
                .map(|text| text.and_then(Moment::read))
                .collect()
        };
        Arc::clone(self.moments.entry(column).or_insert_with(read))
    }

    /// A column in lower case.
    pub(crate) fn lowered(&mut self, column: usize) -> Result<Arc<StringArray>, TooLong> {
        if let Some(lowered) = self.lowered.get(&column) {
            return Ok(Arc::clone(lowered));
        }
        let lowered = Arc::new(lower(self.text(column))?);
        self.lowered.insert(column, Arc::clone(&lowered));
        Ok(lowered)
    }

    /// Removes the items of `mask`. They are dropped at once if few others are left.
    pub(crate) fn remove(&mut self, mask: &BooleanBuffer) -> Result<(), ArrowError> {
        let others = !mask;
        let alive = self.living(others);
        let left = alive.count_set_bits();
        self.alive = Some(alive);
        if left > 0 && left < self.rows / 2 {
            self.drop_removed()
        } else {
            Ok(())
        }
    }

    /// Drops the rows of removed items.
    pub(crate) fn drop_removed(&mut self) -> Result<(), ArrowError> {
        let Some(alive) = self.alive.take().filter(BooleanBuffer::has_false) else {
            return Ok(());
        };
        let filter = FilterBuilder::new(&BooleanArray::from(alive))
            .optimize()
            .build();
        self.rows = filter.count();
        self.numbers.clear();
        self.moments.clear();
        self.lowered.clear();
        for column in &mut self.columns {
            *column = filter.filter(column)?;
        }
        self.bytes = self.columns.iter().map(column_bytes).sum();
        Ok(())
    }

    /// The batch of all items.
    pub(crate) fn finish(self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        RecordBatch::try_new_with_options(Arc::clone(schema), self.columns, &options)
    }
}

/// Bytes that the rows of a column take: values, offsets and validity.
fn column_bytes(column: &ArrayRef) -> u64 {
    let (offsets, rows) = (column.as_string::<i32>().value_offsets(), column.len());
    u64::from(offsets[rows].abs_diff(offsets[0])) + (rows * 4 + rows / 8) as u64
}
