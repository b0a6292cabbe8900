// SPDX-License-Identifier: Apache-2.0
//! Items as Parquet columns of any type that has a text.

mod spans;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use weir_rules::Feed;
use weir_rules::feed::BATCH_ROWS;

use super::spread::guarded;
use super::{Budget, Refused, Work, spread};
use spans::Span;

/// Values that have no text are an error, not an absence.
const STRICT: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: arrow::util::display::FormatOptions::new(),
};

pub(crate) fn decode(bytes: &Bytes, work: &Work<'_>) -> Result<Feed, Refused> {
    let budget = Budget::new(work.limits);
    let (file, schema) = guarded(|| open(bytes, &budget))?;
    let rows = rows_of_groups(file.metadata())?;
    let spans = spans::of(&rows, work.cores);
    let read = |at: usize| read(bytes, &file, &spans[at], &schema, &budget, work);
    let batches = spread(spans.len(), work.cores, read)?;
    let batches = batches.into_iter().flatten().collect();
    Feed::new(schema, batches).map_err(|error| Refused::bad(error.to_string()))
}

/// The file's description, with text read as views, and the schema of the feed.
fn open(bytes: &Bytes, budget: &Budget<'_>) -> Result<(ArrowReaderMetadata, SchemaRef), Refused> {
    // The Arrow schema that a writer may have left in the file is one more thing to be hostile.
    let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let file = ArrowReaderMetadata::load(bytes, options()).map_err(damaged)?;
    check_sizes(file.metadata(), budget)?;
    let fields = file.schema().fields();
    let mut names = std::collections::HashSet::new();
    for field in fields {
        budget.check_name(field.name())?;
        check_type(field)?;
        if !names.insert(field.name()) {
            let reason = format!("the column {:?} is there twice", field.name());
            return Err(Refused::bad(reason));
        }
    }
    // A view is 16 bytes whatever its text: repeated text is counted before it is spread out.
    let views = fields.iter().map(|field| match field.data_type() {
        DataType::Utf8 => Field::new(field.name(), DataType::Utf8View, field.is_nullable()),
        _ => field.as_ref().clone(),
    });
    let views = Arc::new(Schema::new(views.collect::<Vec<_>>()));
    let schema = Feed::schema_of(fields.iter().map(|field| field.name().as_str()));
    let file =
        ArrowReaderMetadata::try_new(Arc::clone(file.metadata()), options().with_schema(views));
    Ok((file.map_err(damaged)?, schema))
}

/// Compares what the file says of itself with the limits, before anything is read. What is read is
/// counted again: the file may lie.
fn check_sizes(file: &ParquetMetaData, budget: &Budget<'_>) -> Result<(), Refused> {
    let columns = file.file_metadata().schema_descr().num_columns();
    budget.check_columns(columns)?;
    let rows: u64 = rows_of_groups(file)?.iter().map(|rows| *rows as u64).sum();
    let groups = file.row_groups().iter();
    let bytes = groups.map(|group| u64::try_from(group.total_byte_size()).unwrap_or(u64::MAX));
    let bytes = bytes.fold(0, u64::saturating_add);
    let claimed = Budget::new(budget.limits);
    claimed.add_items(rows)?;
    claimed.add_cells(rows.saturating_mul(columns as u64), 0)?;
    Budget::new(budget.limits).add_cells(0, bytes)
}

fn rows_of_groups(file: &ParquetMetaData) -> Result<Vec<usize>, Refused> {
    let rows = |rows: i64| {
        // Sums of them stay far from overflow.
        u32::try_from(rows).map_err(|_| Refused::bad(format!("a row group has {rows} rows")))
    };
    let groups = file.row_groups().iter();
    groups
        .map(|group| Ok(rows(group.num_rows())? as usize))
        .collect()
}

fn check_type(field: &Field) -> Result<(), Refused> {
    let kind = field.data_type();
    if !kind.is_nested() && can_cast_types(kind, &DataType::Utf8) {
        return Ok(());
    }
    let name = field.name();
    let reason = format!(
        "the column {name:?} is of type {kind}, which has no text; write JSON text instead"
    );
    Err(Refused::bad(reason))
}

fn read(
    bytes: &Bytes,
    file: &ArrowReaderMetadata,
    span: &Span,
    schema: &SchemaRef,
    budget: &Budget<'_>,
    work: &Work<'_>,
) -> Result<Vec<RecordBatch>, Refused> {
    let mut batches = Vec::new();
    for batch in reader(bytes, file, span)? {
        if work.stop.raised() {
            return Err(Refused::Stopped);
        }
        let batch = batch.map_err(|error| Refused::bad(format!("damaged: {error}")))?;
        budget.add_items(batch.num_rows() as u64)?;
        batches.push(as_text(&batch, schema, budget)?);
    }
    let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
    match found == span.rows {
        true => Ok(batches),
        false => Err(Refused::bad(format!(
            "damaged: {found} rows where {} are announced",
            span.rows
        ))),
    }
}

fn reader(
    bytes: &Bytes,
    file: &ArrowReaderMetadata,
    span: &Span,
) -> Result<ParquetRecordBatchReader, Refused> {
    ParquetRecordBatchReaderBuilder::new_with_metadata(bytes.clone(), file.clone())
        .with_row_groups(span.groups.clone().collect())
        .with_offset(span.offset)
        .with_limit(span.rows)
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(damaged)
}

fn as_text(
    batch: &RecordBatch,
    schema: &SchemaRef,
    budget: &Budget<'_>,
) -> Result<RecordBatch, Refused> {
    let columns = schema.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| column_as_text(field.name(), column, budget));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|error| Refused::bad(error.to_string()))
}

fn column_as_text(name: &str, column: &ArrayRef, budget: &Budget<'_>) -> Result<ArrayRef, Refused> {
    let no_text =
        |error: ArrowError| Refused::bad(format!("the column {name:?} has no text: {error}"));
    let offset_zone;
    let column = match column.data_type() {
        // Parquet knows UTC only; Arrow can name it without a table of time zones as an offset.
        DataType::Timestamp(unit, Some(_)) => {
            let kind = DataType::Timestamp(*unit, Some("+00:00".into()));
            offset_zone = cast_with_options(column, &kind, &STRICT).map_err(no_text)?;
            &offset_zone
        }
        _ => column,
    };
    let cast = || cast_with_options(column, &DataType::Utf8, &STRICT).map_err(no_text);
    let cells = column.len() as u64;
    if let Some(views) = column.as_string_view_opt() {
        let (longest, text) = extent(views.lengths().map(|bytes| bytes as usize));
        budget.check_value(name, longest)?;
        budget.add_cells(cells, text)?;
        return cast();
    }
    let column = cast()?;
    let offsets = column.as_string::<i32>().value_offsets();
    let (longest, text) = extent(offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize));
    budget.check_value(name, longest)?;
    budget.add_cells(cells, text)?;
    Ok(column)
}

/// The longest, and all of them.
fn extent(lengths: impl Iterator<Item = usize>) -> (usize, u64) {
    lengths.fold((0, 0), |(longest, total), bytes| {
        (longest.max(bytes), total + bytes as u64)
    })
}

fn damaged(error: ParquetError) -> Refused {
    Refused::bad(format!("not a Parquet file, or damaged: {error}"))
}
