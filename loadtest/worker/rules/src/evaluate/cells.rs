// SPDX-License-Identifier: Apache-2.0
//! A column of text while it is written.

use std::fmt::Write;

use arrow::array::{Array, StringArray, StringBuilder};
use arrow::buffer::BooleanBuffer;

/// A value, or the column, is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooLong {
    Value,
    Column,
}

/// What the offsets of a `Utf8` column can address.
pub(super) const COLUMN_BYTES: usize = i32::MAX as usize;

/// Writes a column value by value, and each value part by part.
pub(super) struct Cells {
    column: StringBuilder,
    /// Bytes of all values so far.
    total: usize,
    /// Bytes of the present value so far, and how many it may have.
    value: usize,
    limit: usize,
    limit_all: usize,
}

impl Cells {
    /// Room for `rows` values of about `bytes` in all, each of at most `limit` bytes.
    pub(super) fn new(rows: usize, bytes: usize, limit: usize) -> Self {
        let column = StringBuilder::with_capacity(rows, bytes);
        Self {
            column,
            total: 0,
            value: 0,
            limit,
            limit_all: limit,
        }
    }

    /// Appends to the present value.
    pub(super) fn write(&mut self, part: &str) -> Result<(), TooLong> {
        self.value += part.len();
        if self.value > self.limit {
            return Err(TooLong::Value);
        }
        self.append(part)
    }

    /// Appends to the present value if it stays within `limit`.
    fn append(&mut self, part: &str) -> Result<(), TooLong> {
        self.total += part.len();
        if self.total > COLUMN_BYTES {
            return Err(TooLong::Column);
        }
        // Writing to a builder cannot fail.
        let _ = self.column.write_str(part);
        Ok(())
    }

    /// Ends the present value.
    pub(super) fn end(&mut self) {
        self.column.append_value("");
        self.value = 0;
    }

    /// The present value is absent; nothing must be written of it.
    pub(super) fn absent(&mut self) {
        self.column.append_null();
    }

    /// Takes over a whole value, whatever its length.
    pub(super) fn keep(&mut self, value: Option<&str>) -> Result<(), TooLong> {
        match value {
            Some(value) => {
                self.append(value)?;
                self.end();
            }
            None => self.absent(),
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> StringArray {
        self.column.finish()
    }
}

/// A column whose values are written by `write` where `mask` is set and kept elsewhere. A value that
/// came longer than `limit` bytes may keep its length but not grow.
pub(super) fn rewrite(
    column: &StringArray,
    mask: &BooleanBuffer,
    limit: usize,
    mut write: impl FnMut(usize, Option<&str>, &mut Cells) -> Result<(), TooLong>,
) -> Result<StringArray, TooLong> {
    let bytes = column.value_offsets();
    let bytes = bytes[column.len()].abs_diff(bytes[0]) as usize;
    let mut cells = Cells::new(column.len(), bytes, limit);
    for (row, value) in column.iter().enumerate() {
        if mask.value(row) {
            cells.limit = cells.limit_all.max(value.map_or(0, str::len));
            write(row, value, &mut cells)?;
        } else {
            cells.keep(value)?;
        }
    }
    Ok(cells.finish())
}
