// SPDX-License-Identifier: Apache-2.0
//! The values that are written.

use arrow::array::{Array, AsArray, StringArray};

use super::{Place, csv, json, selected};
use crate::feed::Feed;
use crate::plan::Output;
use crate::request::Format;

/// The selected columns of all batches.
pub(super) struct Columns<'a> {
    /// What stands before each value, or in the header.
    names: Vec<String>,
    /// By batch and column; `None` for a field that no item has.
    batches: Vec<Vec<Option<&'a StringArray>>>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(feed: &'a Feed, output: &Output) -> Self {
        let selected = selected(feed, output);
        let columns = |batch: &'a arrow::array::RecordBatch| {
            let column = |at: Option<usize>| at.map(|at| batch.column(at).as_string::<i32>());
            selected.iter().map(|(_, at)| column(*at)).collect()
        };
        Self {
            batches: feed.batches().iter().map(columns).collect(),
            names: selected
                .iter()
                .map(|(name, _)| match output.format {
                    Format::Ndjson | Format::Json => json::key(name),
                    Format::Csv => csv::cell(name),
                })
                .collect(),
        }
    }

    /// The names, as JSON keys with a colon or as CSV cells.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The values of an item, each with its name.
    pub(super) fn item(
        &self,
        (batch, row): Place,
    ) -> impl Iterator<Item = (&str, Option<&'a str>)> {
        let row = row as usize;
        let value = move |column: &Option<&'a StringArray>| {
            column
                .filter(|column| column.is_valid(row))
                .map(|column| column.value(row))
        };
        let values = self.batches[batch as usize].iter().map(value);
        self.names.iter().map(String::as_str).zip(values)
    }
}
