// SPDX-License-Identifier: Apache-2.0
//! From the bytes of an object to columns of text.

mod budget;
mod ndjson;
mod parquet;
mod spread;

use bytes::Bytes;
use weir_rules::{Feed, Stop};

use crate::error::StoreError;
use crate::limits::FeedLimits;
use crate::object::Format;

pub(crate) use budget::Budget;
pub(crate) use spread::spread;

/// What a decoder works with.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) cores: usize,
    pub(crate) limits: &'a FeedLimits,
    pub(crate) stop: &'a Stop,
}

/// Why bytes are no feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    Bad { line: Option<u64>, reason: String },
    TooLarge(String),
    Stopped,
}

impl Refused {
    /// Something without a line.
    pub(crate) fn bad(reason: impl Into<String>) -> Self {
        let (line, reason) = (None, reason.into());
        Self::Bad { line, reason }
    }

    /// The same, known to be at `line`.
    pub(crate) fn at(self, line: u64) -> Self {
        match self {
            Self::Bad { line: None, reason } => Self::Bad {
                line: Some(line),
                reason,
            },
            Self::TooLarge(reason) => Self::TooLarge(format!("line {line}: {reason}")),
            other => other,
        }
    }

    /// As the error of `object`.
    pub(crate) fn of(self, object: String) -> StoreError {
        match self {
            Self::Bad { line, reason } => StoreError::BadFeed {
                object,
                line,
                reason,
            },
            Self::TooLarge(reason) => StoreError::TooLarge { object, reason },
            Self::Stopped => StoreError::Stopped { object },
        }
    }
}

/// The items in `bytes`. The same bytes give the same feed, batch by batch, on any number of cores.
pub(crate) fn decode(bytes: &Bytes, format: Format, work: &Work<'_>) -> Result<Feed, Refused> {
    match format {
        Format::Ndjson => ndjson::decode(bytes, work),
        Format::Parquet => parquet::decode(bytes, work),
    }
}
