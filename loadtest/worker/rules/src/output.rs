// SPDX-License-Identifier: Apache-2.0
//! Results are searched, sorted, selected and written.
//!
//! Searching and sorting give the order of the items: pairs of batch and row. Cores then format
//! pieces of that order, and the calling thread hands the bytes on in order.

use std::sync::Arc;

use bytes::Bytes;

use crate::evaluate::{self, EvaluateError, items::Items, parallel};
use crate::feed::Feed;
use crate::limits::Limits;
use crate::plan::Output;
use crate::request::Format;
use crate::stop::Stop;

mod columns;
mod csv;
mod json;
mod sort;
mod stream;

use columns::Columns;

/// The one who was to take the bytes takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sink is closed")]
pub struct SinkClosed;

/// Where an item is: its batch and its row there.
type Place = (u32, u32);

impl Output {
    /// The media type of what [`Output::write`] makes.
    #[must_use]
    pub fn content_type(&self) -> &'static str {
        match self.format {
            Format::Ndjson => "application/x-ndjson",
            Format::Json => "application/json",
            Format::Csv => "text/csv; charset=utf-8",
        }
    }

    /// Writes the result in chunks of about 64 KiB, the last one shorter. Nothing is given to the
    /// sink for a result without bytes.
    ///
    /// # Errors
    /// A limit, `stop`, a closed sink, or a feed that is not text. Chunks may have been given before.
    pub fn write(
        &self,
        feed: &Feed,
        cores: usize,
        limits: &Limits,
        stop: &Stop,
        sink: &mut dyn FnMut(Bytes) -> Result<(), SinkClosed>,
    ) -> Result<(), EvaluateError> {
        evaluate::check_text(feed.schema())?;
        let mut order = self.found(feed, cores, stop)?;
        sort::sort(&mut order, feed, &self.sort, stop)?;
        let columns = Columns::new(feed, self);
        stream::write(
            &columns,
            &order,
            self.format,
            stream::Effort {
                cores,
                limits,
                stop,
            },
            sink,
        )
    }

    /// The items that the search leaves, in the order of the feed.
    fn found(&self, feed: &Feed, cores: usize, stop: &Stop) -> Result<Vec<Place>, EvaluateError> {
        let batches = feed.batches();
        let Some(search) = &self.search else {
            return Ok(places(batches.iter().map(|batch| 0..batch.num_rows())));
        };
        let names = evaluate::names(feed.schema());
        let columns: Vec<usize> = match &search.fields {
            Some(fields) => fields
                .iter()
                .filter_map(|field| names.get(&**field).copied())
                .collect(),
            None => (0..feed.schema().fields().len()).collect(),
        };
        let masks = parallel::in_order(batches.len(), cores, stop, |at| {
            let mut items = Items::new(&batches[at], feed.schema(), &names, stop);
            evaluate::filter::search(&mut items, columns.iter().copied(), &search.text)
        })?;
        Ok(places(masks.iter().map(|mask| mask.set_indices())))
    }
}

/// Rows of each batch in turn. Both numbers fit: a batch has at most `BATCH_ROWS` rows.
fn places(rows: impl Iterator<Item = impl Iterator<Item = usize>>) -> Vec<Place> {
    let place = |batch: usize, row: usize| (batch as u32, row as u32);
    rows.enumerate()
        .flat_map(|(batch, rows)| rows.map(move |row| place(batch, row)))
        .collect()
}

/// What is written of the columns of a feed: name and position.
fn selected(feed: &Feed, output: &Output) -> Vec<(Arc<str>, Option<usize>)> {
    let names = evaluate::names(feed.schema());
    let shown = |name: &Arc<str>| output.omit.binary_search(name).is_err();
    let found = |name: Arc<str>| {
        let at = names.get(&*name).copied();
        (name, at)
    };
    match &output.fields {
        Some(fields) => fields
            .iter()
            .filter(|name| shown(name))
            .cloned()
            .map(found)
            .collect(),
        None => {
            let fields = feed.schema().fields().iter().enumerate();
            let named = fields.map(|(at, field)| (Arc::from(field.name().as_str()), Some(at)));
            named
                .filter(|(name, at)| shown(name) && names.get(&**name) == at.as_ref())
                .collect()
        }
    }
}
