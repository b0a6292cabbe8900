// SPDX-License-Identifier: Apache-2.0
//! Limits on discovery streams.

/// What all streams together and each of them may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryLimits {
    /// Streams.
    pub max_streams: usize,
    /// Streams with one node id.
    pub max_streams_per_proxy: usize,
    /// Bytes that the names of one stream take. A name counts 96 bytes and its length, twice: as asked for, and as
    /// owed or held.
    pub max_stream_bytes: usize,
    /// The same of all streams.
    pub max_bytes: usize,
}

impl DiscoveryLimits {
    /// For a fleet of so many proxies: each has a stream of its own and one of its filter.
    pub fn for_proxies(proxies: usize) -> Self {
        Self {
            max_streams: 2 * proxies,
            // An Envoy and its successor have two each; gateways may share an id.
            max_streams_per_proxy: 64,
            // 64 clusters of 64 shards take 1 MiB.
            max_stream_bytes: 4 << 20,
            max_bytes: 512 << 20,
        }
    }
}
