// SPDX-License-Identifier: Apache-2.0
//! Rules are applied to items.
//!
//! Batches are independent, so cores take them one by one from a shared counter. Within a batch the
//! condition of an operator becomes a mask of items once, and each action rewrites one column where
//! the mask is set. Columns that no action touches are shared with the feed they came from. Removed
//! items leave when the batch is done, or earlier where most of it is gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;

use crate::feed::Feed;
use crate::limits::Limits;
use crate::plan::Rules;
use crate::stop::Stop;

mod action;
mod cells;
pub(crate) mod filter;
pub(crate) mod items;
pub(crate) mod lower;
pub(crate) mod parallel;
mod text;

use items::Items;

/// Why a feed could not be processed or sent.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// [`Stop`] was raised.
    #[error("stopped before it was done")]
    Stopped,
    /// The sink takes no more.
    #[error("the client is gone")]
    ClientGone,
    /// An action made a value longer than [`Limits::value_bytes`].
    #[error("{operator}: a value of `{field}` grows over {limit} bytes: combine or replace less")]
    ValueTooLong {
        /// Place and name of the operator.
        operator: String,
        /// The field it writes.
        field: String,
        /// The limit.
        limit: usize,
    },
    /// The values of a column of one batch go over what Arrow's `Utf8` can address.
    #[error("{operator}: the values of `{field}` take over 2 GiB in one batch: shorten them")]
    ColumnTooLong {
        /// Place and name of the operator, or `search`.
        operator: String,
        /// The field.
        field: String,
    },
    /// The feed and the rules have more columns than [`Limits::columns`].
    #[error("the result has {columns} columns, at most {limit} are allowed")]
    TooManyColumns {
        /// How many.
        columns: usize,
        /// The limit.
        limit: usize,
    },
    /// The rules make more than [`Limits::feed_bytes`].
    #[error("the result takes over {0} bytes: split the project or remove fields")]
    FeedTooLarge(u64),
    /// The answer is longer than [`Limits::output_bytes`].
    #[error("the answer takes over {0} bytes: ask for fewer fields or items")]
    OutputTooLarge(u64),
    /// A column is not text.
    #[error("column `{0}` is not text: feeds have `Utf8` columns")]
    NotText(String),
    /// Arrow refused an operation.
    #[error("a column could not be processed: {0}")]
    Arrow(#[from] ArrowError),
}

/// What all batches of a feed share while rules are applied.
struct Context<'a> {
    rules: &'a Rules,
    /// Columns after the rules.
    schema: SchemaRef,
    columns: HashMap<String, usize>,
    limits: &'a Limits,
    stop: &'a Stop,
    /// Of the batches that are done.
    bytes: AtomicU64,
}

impl Rules {
    /// The feed after these rules, in the order it had. Fields that rules add come last, as columns
    /// of all batches; items that rules remove are gone, and so are batches that are empty then.
    ///
    /// # Errors
    /// A limit, `stop`, or a feed that is not text.
    pub fn apply(
        &self,
        feed: &Feed,
        cores: usize,
        limits: &Limits,
        stop: &Stop,
    ) -> Result<Feed, EvaluateError> {
        check_text(feed.schema())?;
        if self.is_empty() {
            return Ok(feed.clone());
        }
        let schema = self.schema_after(feed.schema(), limits)?;
        let context = Context {
            rules: self,
            columns: names(&schema),
            schema,
            limits,
            stop,
            bytes: AtomicU64::new(0),
        };
        let batches = feed.batches();
        let results =
            parallel::in_order(batches.len(), cores, stop, |at| context.batch(&batches[at]))?;
        let schema = Arc::clone(&context.schema);
        let batches = results.into_iter().flatten().collect();
        // The batches were made with this schema.
        Feed::new(schema, batches)
            .map_err(|error| ArrowError::SchemaError(error.to_string()).into())
    }

    fn schema_after(
        &self,
        before: &SchemaRef,
        limits: &Limits,
    ) -> Result<SchemaRef, EvaluateError> {
        let known: std::collections::HashSet<&str> = before
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let added: Vec<&str> = self
            .created
            .iter()
            .map(|name| &**name)
            .filter(|name| !known.contains(name))
            .collect();
        let columns = before.fields().len() + added.len();
        if columns > limits.columns {
            return Err(EvaluateError::TooManyColumns {
                columns,
                limit: limits.columns,
            });
        }
        if added.is_empty() {
            return Ok(Arc::clone(before));
        }
        let before = before.fields().iter().map(|field| field.name().as_str());
        Ok(Feed::schema_of(before.chain(added)))
    }
}

impl Context<'_> {
    fn batch(&self, batch: &RecordBatch) -> Result<Option<RecordBatch>, EvaluateError> {
        let mut items = Items::new(batch, &self.schema, &self.columns, self.stop);
        for operator in &*self.rules.operators {
            if self.stop.border() {
                return Err(EvaluateError::Stopped);
            }
            action::perform(operator, &mut items, self)?;
            if items.is_empty() {
                return Ok(None);
            }
        }
        items.drop_removed()?;
        self.check(&items)?;
        self.bytes.fetch_add(items.bytes(), Ordering::Relaxed);
        let batch = items.finish(&self.schema)?;
        Ok((batch.num_rows() > 0).then_some(batch))
    }

    /// The batches that are done and this one, however far it is, are within the limit.
    fn check(&self, items: &Items<'_>) -> Result<(), EvaluateError> {
        let (done, limit) = (self.bytes.load(Ordering::Relaxed), self.limits.feed_bytes);
        if done + items.bytes() > limit {
            return Err(EvaluateError::FeedTooLarge(limit));
        }
        Ok(())
    }
}

/// Where each column is. The first of several of one name counts.
pub(crate) fn names(schema: &SchemaRef) -> HashMap<String, usize> {
    let names = schema.fields().iter().enumerate().rev();
    names
        .map(|(at, field)| (field.name().clone(), at))
        .collect()
}

pub(crate) fn check_text(schema: &SchemaRef) -> Result<(), EvaluateError> {
    let other = schema
        .fields()
        .iter()
        .find(|field| *field.data_type() != DataType::Utf8);
    other.map_or(Ok(()), |field| {
        Err(EvaluateError::NotText(field.name().clone()))
    })
}
