// SPDX-License-Identifier: Apache-2.0
//! The items of a project, in columns.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

/// Rows of a batch. Small enough that the columns of one operator stay in a core's cache, large
/// enough that the cost per batch disappears.
pub const BATCH_ROWS: usize = 8192;

/// Items in columns. A value is text or absent (null), as in a product feed: every column is `Utf8`
/// and nullable, and rules read numbers and dates out of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

/// A batch whose columns are not those of its feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("batch {0} has other columns than the feed")]
pub struct OtherColumns(pub usize);

impl Feed {
    /// A feed of batches that all have exactly `schema`.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self, OtherColumns> {
        match batches.iter().position(|batch| batch.schema() != schema) {
            Some(at) => Err(OtherColumns(at)),
            None => Ok(Self { schema, batches }),
        }
    }

    /// The schema of these columns, each nullable text.
    #[must_use]
    pub fn schema_of<'a>(names: impl IntoIterator<Item = &'a str>) -> SchemaRef {
        let field = |name| Field::new(name, DataType::Utf8, true);
        Arc::new(Schema::new(
            names.into_iter().map(field).collect::<Vec<_>>(),
        ))
    }

    /// Names and order of the columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The items, at most [`BATCH_ROWS`] a batch.
    #[must_use]
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Number of items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Memory held, in bytes. Columns that two feeds share count in both.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let bytes = RecordBatch::get_array_memory_size;
        self.batches.iter().map(bytes).sum()
    }
}
