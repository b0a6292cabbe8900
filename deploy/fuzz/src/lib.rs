// SPDX-License-Identifier: Apache-2.0
//! Every decoder of bytes that come from outside a process, and what holds of each whatever the bytes are.
//!
//! ```text
//!  corpus/NAME/* ──┬── mutate ──> cargo test ──┐
//!                  └── cargo fuzz (targets/) ──┴──> Decoder::decode: accepted or refused, else it panics
//! ```
//!
//! A decoder is a name, a function and a folder of the corpus; both drivers take all of [`DECODERS`].

mod control;
mod engine;
mod file;
mod filter;
mod governor;
mod laws;
pub mod mutate;
mod world;

/// A decoder and its laws.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    /// Of the fuzz target and of the folder of the corpus.
    pub name: &'static str,
    decode: fn(&[u8]) -> bool,
}

impl Decoder {
    /// Whether the bytes are accepted, at least in part. Panics where a law does not hold.
    pub fn decode(&self, bytes: &[u8]) -> bool {
        (self.decode)(bytes)
    }
}

/// All of them.
pub const DECODERS: &[Decoder] = &[
    decoder("host_table", filter::host_table),
    decoder("cache_shard", filter::cache_shard),
    decoder("plugin", filter::plugin),
    decoder("tables_response", filter::tables_response),
    decoder("orca", filter::orca),
    decoder("headers", filter::headers),
    decoder("key", filter::key),
    decoder("body", filter::body),
    decoder("index", filter::index),
    decoder("lease", filter::lease),
    decoder("configuration", file::configuration),
    decoder("hosts_file", file::hosts_file),
    decoder("caching_plan", file::caching_plan),
    decoder("consul_health", control::consul_health),
    decoder("consul_roots", control::consul_roots),
    decoder("consul_lock", control::consul_lock),
    decoder("kubernetes_lease", control::kubernetes_lease),
    decoder("weir_policy", control::weir_policy),
    decoder("prometheus", control::prometheus),
    decoder("scrape", control::scrape),
    decoder("cache_page", control::cache_page),
    decoder("kv_batch", engine::kv_batch),
    decoder("zmtp", engine::zmtp),
    decoder("report", control::report),
    decoder("node_report", control::node_report),
    decoder("discovery_requests", control::discovery_requests),
    decoder("mirror", control::mirror),
    decoder("explain", control::explain),
    decoder("governor_configuration", file::governor_configuration),
    decoder("events", governor::events),
    decoder("tail_page", governor::tail_page),
    decoder("tail_query", governor::tail_query),
    decoder("host_row", governor::host_row),
    decoder("top", governor::top),
    decoder("elf", file::elf),
];

const fn decoder(name: &'static str, decode: fn(&[u8]) -> bool) -> Decoder {
    Decoder { name, decode }
}

/// Of a fuzz target: hands bytes to the decoder of this name.
pub fn fuzz(name: &str, bytes: &[u8]) {
    let mut all = DECODERS.iter();
    let decoder = all.find(|decoder| decoder.name == name);
    decoder
        .unwrap_or_else(|| panic!("there is no decoder {name}"))
        .decode(bytes);
}
