// SPDX-License-Identifier: Apache-2.0
//! Columns in lower case, so that filters that ignore case can use the same kernels.

use arrow::array::{Array, StringArray};
use arrow::buffer::{Buffer, OffsetBuffer};

pub(crate) use super::cells::TooLong;
use super::cells::{COLUMN_BYTES, Cells};

/// The column with each value in lower case, as `str::to_lowercase` has it.
pub(crate) fn lower(column: &StringArray) -> Result<StringArray, TooLong> {
    let offsets = column.value_offsets();
    let (first, last) = (offsets[0], offsets[column.len()]);
    let bytes = &column.values()[first as usize..last as usize];
    if bytes.is_ascii() {
        return Ok(lower_ascii(column, first, bytes));
    }
    let mut cells = Cells::new(column.len(), bytes.len(), COLUMN_BYTES);
    for value in column {
        match value {
            Some(value) => {
                cells.write(&value.to_lowercase())?;
                cells.end();
            }
            None => cells.absent(),
        }
    }
    Ok(cells.finish())
}

/// Letters keep their length, so all values are lowered at once.
fn lower_ascii(column: &StringArray, first: i32, bytes: &[u8]) -> StringArray {
    let offsets: Vec<i32> = column
        .value_offsets()
        .iter()
        .map(|offset| offset - first)
        .collect();
    let values = Buffer::from_vec(bytes.to_ascii_lowercase());
    StringArray::new(
        OffsetBuffer::new(offsets.into()),
        values,
        column.nulls().cloned(),
    )
}
