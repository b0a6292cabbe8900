// SPDX-License-Identifier: Apache-2.0
//! The item store of document 001 (section 2.4), and a generator of projects.
//!
//! ```text
//! folder | s3:// | gs://  --find-->  Object  --fetch-->  bytes  --decode-->  Feed (columns of text)
//! generate::Settings      --generate-->  <project>.parquet|.ndjson, rules/*.json, feeds.json
//! ```

mod decode;
mod error;
pub mod generate;
mod limits;
mod object;
mod store;

pub use error::StoreError;
pub use limits::FeedLimits;
pub use object::{Format, Object};
pub use store::ItemStore;
