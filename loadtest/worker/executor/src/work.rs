// SPDX-License-Identifier: Apache-2.0
//! What the executor passes through without looking at it.

use std::fmt::Debug;
use std::sync::Arc;

use crate::Kind;

/// One joblet's work, and what comes of it.
pub trait Work: Debug + Clone + Send + 'static {
    /// The result, cheap to clone: the cache and several jobs hold it.
    type Output: Debug + Clone + Send + 'static;
    /// Why there is none; every job that shares the joblet gets it.
    type Error: Debug + Clone + Send + 'static;
}

/// Names a result: equal names mean equal data, so one joblet serves all who want it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResultId {
    /// The kind of joblet that makes it.
    pub kind: Kind,
    /// The project; what `/cache` tells of a [`Kind::FeedSource`].
    pub key: Arc<str>,
    /// Digest of everything else that the result depends on: the version of the items, the rules.
    pub version: u128,
}

/// A result and its size.
#[derive(Debug, Clone)]
pub struct Product<T> {
    /// The result.
    pub output: T,
    /// Bytes that it takes in the cache.
    pub bytes: u64,
}
