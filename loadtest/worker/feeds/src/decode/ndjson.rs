// SPDX-License-Identifier: Apache-2.0
//! Items as JSON objects, one a line.
//!
//! The file is cut into segments of [`BATCH_ROWS`] lines, each parsed by itself into one batch with
//! the fields it saw; then the batches get the union of the fields, in order of first appearance.
//! Where it is cut depends on the file alone, so the feed is the same on any number of cores.

mod columns;
mod row;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{DataType, SchemaRef};
use weir_rules::Feed;
use weir_rules::feed::BATCH_ROWS;

use super::{Budget, Refused, Work, spread};
use columns::{Columns, Parsed};

/// Items parsed between two looks at `Stop`.
const LOOK_EVERY: usize = 512;

/// Consecutive lines.
struct Segment<'a> {
    bytes: &'a [u8],
    first_line: u64,
}

pub(crate) fn decode(bytes: &[u8], work: &Work<'_>) -> Result<Feed, Refused> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let segments = cut(bytes);
    let budget = Budget::new(work.limits);
    let parsed = spread(segments.len(), work.cores, |at| {
        parse(&segments[at], &budget, work)
    })?;
    unite(parsed, &budget)
}

/// Cuts after every [`BATCH_ROWS`] lines.
fn cut(bytes: &[u8]) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let mut start = 0;
    let last_of_segment = memchr::memchr_iter(b'\n', bytes)
        .skip(BATCH_ROWS - 1)
        .step_by(BATCH_ROWS);
    let ends = last_of_segment
        .map(|newline| newline + 1)
        .chain([bytes.len()]);
    for (at, end) in ends.enumerate() {
        if start < end {
            segments.push(Segment {
                bytes: &bytes[start..end],
                first_line: (at * BATCH_ROWS) as u64 + 1,
            });
        }
        start = end;
    }
    segments
}

fn parse(segment: &Segment<'_>, budget: &Budget<'_>, work: &Work<'_>) -> Result<Parsed, Refused> {
    let text = match std::str::from_utf8(segment.bytes) {
        Ok(text) => text,
        Err(error) => return Err(not_utf8(segment, error.valid_up_to())),
    };
    let mut columns = Columns::new(budget);
    for (at, line) in text.lines().enumerate() {
        if at % LOOK_EVERY == 0 && work.stop.raised() {
            return Err(Refused::Stopped);
        }
        if line.bytes().all(|byte| byte.is_ascii_whitespace()) {
            continue;
        }
        budget.add_items(1)?;
        row::read(line, &mut columns)
            .map_err(|refused| refused.at(segment.first_line + at as u64))?;
    }
    columns.finish()
}

fn not_utf8(segment: &Segment<'_>, valid: usize) -> Refused {
    let lines = memchr::memchr_iter(b'\n', &segment.bytes[..valid]).count();
    let byte = segment.bytes.get(valid).copied().unwrap_or_default();
    let line = Some(segment.first_line + lines as u64);
    let reason = format!("byte 0x{byte:02x} is not UTF-8; write the file in UTF-8");
    Refused::Bad { line, reason }
}

/// The batches with the union of their fields.
fn unite(parsed: Vec<Parsed>, budget: &Budget<'_>) -> Result<Feed, Refused> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    for name in parsed.iter().flat_map(|part| &part.names) {
        places.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() - 1
        });
        budget.check_columns(names.len())?;
    }
    for part in &parsed {
        let absent = (names.len() - part.names.len()) as u64;
        budget.add_cells(absent * part.rows as u64, 0)?;
    }
    let schema = Feed::schema_of(names.iter().copied());
    let batches = parsed
        .iter()
        .filter(|part| part.rows > 0)
        .map(|part| spread_out(part, &places, &schema))
        .collect::<Result<Vec<_>, _>>()?;
    Feed::new(schema, batches).map_err(|error| Refused::bad(error.to_string()))
}

/// The batch of `part`, its columns at their places and the others absent.
fn spread_out(
    part: &Parsed,
    places: &HashMap<&str, usize>,
    schema: &SchemaRef,
) -> Result<RecordBatch, Refused> {
    let absent = new_null_array(&DataType::Utf8, part.rows);
    let mut columns: Vec<ArrayRef> = vec![absent; schema.fields().len()];
    for (name, column) in part.names.iter().zip(&part.columns) {
        if let Some(place) = places.get(name.as_ref()) {
            columns[*place] = Arc::clone(column);
        }
    }
    // The count is given, because items may have no fields at all.
    let options = RecordBatchOptions::new().with_row_count(Some(part.rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|error| Refused::bad(error.to_string()))
}
