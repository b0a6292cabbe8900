// SPDX-License-Identifier: Apache-2.0
//! Items to a file, batch by batch.

use std::io::{self, Write};

use arrow::array::{Array, AsArray, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use weir_rules::Feed;
use weir_rules::feed::BATCH_ROWS;

use super::draw::Draw;
use super::item::{FIELDS, Shop};
use super::{Folder, GenerateError};
use crate::object::Format;

/// A row group is held in memory until it is written: some 40 MB.
const GROUP_ROWS: usize = 8 * BATCH_ROWS;

/// Fields that NDJSON has as numbers, when they are.
const NUMBERS: [&str; 3] = ["price", "sale_price", "stock"];

/// Writes `items` of `shop` and gives the size of the file. `tell` hears how many there are so far.
pub(super) fn items(
    format: Format,
    folder: &Folder,
    shop: &Shop,
    items: u64,
    draw: &mut Draw,
    tell: &mut dyn FnMut(u64),
) -> Result<u64, GenerateError> {
    let name = format!("{}.{}", shop.project, format.suffix());
    let mut written = 0;
    let batches = std::iter::from_fn(|| {
        let rows = (items - written).min(BATCH_ROWS as u64);
        (rows > 0).then(|| {
            let batch = shop.batch(written, rows as usize, draw);
            written += rows;
            tell(written);
            batch.map_err(io::Error::other)
        })
    });
    folder.write(&name, |out| match format {
        Format::Parquet => parquet(batches, out),
        Format::Ndjson => ndjson(batches, out),
    })
}

fn parquet(
    batches: impl Iterator<Item = io::Result<RecordBatch>>,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    let properties = WriterProperties::builder()
        .set_created_by("weir-feeds".into())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let mut writer =
        ArrowWriter::try_new(out, Feed::schema_of(FIELDS), Some(properties)).map_err(disk)?;
    for batch in batches {
        writer.write(&batch?).map_err(disk)?;
    }
    writer.close().map_err(disk)?;
    Ok(())
}

/// The error of the disk itself, where it is one.
fn disk(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(disk) => *disk,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn ndjson(
    batches: impl Iterator<Item = io::Result<RecordBatch>>,
    out: &mut impl Write,
) -> io::Result<()> {
    for batch in batches {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            line(&batch, row, out)?;
        }
    }
    Ok(())
}

/// Absent fields are left out.
fn line(batch: &RecordBatch, row: usize, out: &mut impl Write) -> io::Result<()> {
    let mut separator = b"{";
    for (field, column) in FIELDS.iter().zip(batch.columns()) {
        if column.is_null(row) {
            continue;
        }
        out.write_all(separator)?;
        separator = b",";
        serde_json::to_writer(&mut *out, field)?;
        out.write_all(b":")?;
        let value = column.as_string::<i32>().value(row);
        match NUMBERS.contains(field) && is_json_number(value) {
            true => out.write_all(value.as_bytes())?,
            false => serde_json::to_writer(&mut *out, value)?,
        }
    }
    out.write_all(if separator == b"{" { b"{}\n" } else { b"}\n" })
}

fn is_json_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}
