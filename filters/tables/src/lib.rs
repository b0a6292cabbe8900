// SPDX-License-Identifier: Apache-2.0
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
//! The weir.v1 tables and reports: encoding, decoding and validation.
//!
//! ```text
//!  bytes ── prost ──> v1::HostTable  ── host_table.rs ───> (Meta, weir_policy::Table)      or Refusal
//!                     v1::CacheShard ── cache_shard.rs ──> (Meta, weir_policy::CacheShard) or Refusal
//! ```
//!
//! A [`Refusal`] names the field and the reason in a line: it is what a NACK carries. The folder's FORMAT.md
//! is the specification for other languages.

mod cache_shard;
mod host_table;
mod load;
mod name;
mod pace;
mod receipt;

use prost::Message;

pub use cache_shard::{ShardBuilder, decode_cache_shard};
pub use host_table::{decode_host_table, encode_policy, encode_selection};
pub use load::{decode_load, encode_load, encode_work};
pub use name::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, cache_shard_name, parse_cache_shard_name};
pub use pace::Pace;
pub use receipt::{decode_account, encode_look};

/// Generated from `proto/weir/v1`.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::expect_used,
    clippy::indexing_slicing
)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/weir.v1.rs"));
}

/// Generated from `proto/envoy/service/discovery/v3`: the part of delta xDS that the filter speaks.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod discovery {
    include!(concat!(env!("OUT_DIR"), "/envoy.service.discovery.v3.rs"));
}

/// Which build of a resource it is. Versions are comparable within one epoch only; of epochs, those that two
/// leaders of one group of weir-control drew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Drawn by each weir-control process, and anew each time that it becomes the leader of several.
    pub epoch: u64,
    /// Grows with every build of the resource in that process.
    pub version: u64,
}

/// Set in an epoch that says nothing of any other.
const UNFENCED: u64 = 1 << 63;

impl Meta {
    /// The epoch of a process without a lock, or of the leader that took the lock of its group as the `index`-th.
    /// An index that does not fit counts as none.
    pub fn draw_epoch(index: u64, random: u64) -> u64 {
        let fits = (1..UNFENCED >> 32).contains(&index);
        match fits {
            true => index << 32 | random & u64::from(u32::MAX),
            false => random | UNFENCED,
        }
    }

    /// The index of the leader that built it; none where it had no lock.
    pub fn fence(self) -> Option<u64> {
        let index = self.epoch >> 32;
        (self.epoch & UNFENCED == 0 && index > 0).then_some(index)
    }

    /// That of an encoded [`v1::HostTable`], and nothing else of it; none where these bytes are no message.
    pub fn of_host_table(bytes: &[u8]) -> Option<Self> {
        let TableHead { epoch, version } = TableHead::decode(bytes).ok()?;
        Some(Self { epoch, version })
    }

    /// That of an encoded [`v1::CacheShard`], likewise.
    pub fn of_cache_shard(bytes: &[u8]) -> Option<Self> {
        let ShardHead { epoch, version } = ShardHead::decode(bytes).ok()?;
        Some(Self { epoch, version })
    }

    /// Whether it was built before `other` by the same process.
    pub fn is_older_than(self, other: Self) -> bool {
        self.epoch == other.epoch && self.version < other.version
    }

    /// Whether it is by a leader that had lost its lock when the one of `other` took it.
    pub fn is_of_older_leader_than(self, other: Self) -> bool {
        matches!((self.fence(), other.fence()), (Some(old), Some(new)) if old < new)
    }
}

/// The first fields of a [`v1::HostTable`].
#[derive(Clone, PartialEq, Message)]
struct TableHead {
    #[prost(fixed64, tag = "2")]
    epoch: u64,
    #[prost(uint64, tag = "3")]
    version: u64,
}

/// The first fields of a [`v1::CacheShard`].
#[derive(Clone, PartialEq, Message)]
struct ShardHead {
    #[prost(fixed64, tag = "1")]
    epoch: u64,
    #[prost(uint64, tag = "2")]
    version: u64,
}

/// Its form as the version of an xDS resource: `<epoch in hex>.<version>`.
impl std::fmt::Display for Meta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}.{}", self.epoch, self.version)
    }
}

/// A version that no [`Meta`] was written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no `<epoch in hex>.<version>`")]
pub struct NoVersion;

impl std::str::FromStr for Meta {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let (epoch, version) = text.split_once('.').ok_or(NoVersion)?;
        Ok(Self {
            epoch: u64::from_str_radix(epoch, 16).map_err(|_| NoVersion)?,
            version: version.parse().map_err(|_| NoVersion)?,
        })
    }
}

/// The most of a text that a refusal repeats, so that it fits into a NACK.
const MAX_SHOWN: usize = 64;

fn clipped(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

/// Why a resource was refused, in one line that names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Refusal {
    #[error("not a {message}: {source}")]
    NotProtobuf {
        message: &'static str,
        source: prost::DecodeError,
    },
    #[error("{field}: {value} is not one that this version knows; known are {known}")]
    UnknownValue {
        field: &'static str,
        value: i32,
        known: &'static str,
    },
    #[error("cluster: the resource {name:?} carries the table of {cluster:?}")]
    WrongCluster { name: String, cluster: String },
    #[error("hosts[{index}].{field}: {value} is not in {range}")]
    HostOutOfRange {
        index: usize,
        field: &'static str,
        value: i64,
        range: &'static str,
    },
    #[error(transparent)]
    Table(#[from] weir_policy::TableError),
    #[error(transparent)]
    Shard(#[from] weir_policy::ShardError),
    #[error("{bytes} bytes when decoded are more than is left of {limit}")]
    NoRoom { bytes: usize, limit: usize },
    #[error("name: {name:?} is not <cluster>/<shards>/<shard>")]
    BadName { name: String },
    #[error("version: {offered} is older than {current}, which is in use")]
    Older { offered: Meta, current: Meta },
    #[error("epoch: {offered} is of an older leader than {current}, which is in use and fresh")]
    OlderLeader { offered: Meta, current: Meta },
}
