// SPDX-License-Identifier: Apache-2.0
//! What reaches the filter: tables, its configuration, headers, and what other VMs of the proxy wrote.

use std::time::Duration;

use prost::Message;
use weir_body::Body;
use weir_body::value::Pointer;
use weir_filter::config::{Config, key_in_path, keys};
use weir_filter::headers::Headers;
use weir_filter::index::{Index, Kind, Says};
use weir_filter::lease::{Generations, Lease};
use weir_filter::{answer, orca, stream};
use weir_policy::{KeyHash, MAX_HOSTS, MAX_KEYS};
use weir_tables::discovery::DeltaDiscoveryResponse;
use weir_tables::{Meta, decode_cache_shard, decode_host_table};

use crate::laws::{accepted, is_a_line, message};

const NOW: Duration = Duration::from_secs(1000);

pub(crate) fn host_table(bytes: &[u8]) -> bool {
    // The name that the golden message has.
    let Some((_, table)) = accepted(decode_host_table("rules", bytes, NOW)) else {
        return false;
    };
    assert!(table.hosts().len() <= MAX_HOSTS);
    true
}

pub(crate) fn cache_shard(bytes: &[u8]) -> bool {
    accepted(decode_cache_shard("rules/4/2", bytes)).is_some()
}

pub(crate) fn plugin(bytes: &[u8]) -> bool {
    let Some(config) = accepted(Config::parse(bytes)) else {
        return false;
    };
    assert!(config.clusters.len() <= 64 && config.default_class < 32);
    assert!(config.class(Some(b"\xff")) == config.default_class);
    true
}

/// The bytes are a response; it is checked as each of the two kinds, by a proxy that has something already.
pub(crate) fn tables_response(bytes: &[u8]) -> bool {
    let Some(response) = message::<DeltaDiscoveryResponse>(bytes) else {
        return false;
    };
    let (meta, table) = (
        Meta {
            epoch: 3 << 32,
            version: 3,
        },
        Says {
            cache_shards: 4,
            stale_after: Duration::from_secs(5),
            bytes: 0,
        },
    );
    let mut index = Index::default();
    index.insert(Kind::Table, "rules", meta, table, NOW);
    let mut taken = false;
    for kind in Kind::ALL {
        let update = stream::check(&response, kind, &index, usize::MAX, false, NOW);
        let (good, bad) = (update.accepted.len(), update.refusals.len());
        assert_eq!(good + bad, response.resources.len(), "each is taken or not");
        let answer = stream::answer(&response, &update);
        assert_eq!(answer.error_detail.is_some(), bad > 0);
        if let Some(why) = answer.error_detail {
            is_a_line(&why.message);
        }
        for new in &update.accepted {
            index.insert(kind, new.name, new.meta, new.says, NOW);
        }
        // A removal alone is one.
        taken |= bad == 0;
    }
    taken
}

pub(crate) fn orca(bytes: &[u8]) -> bool {
    let Some(said) = orca::parse(bytes, NOW) else {
        return false;
    };
    assert!(said.load.is_none_or(|load| load.observed == NOW));
    true
}

/// The bytes are a header map as a proxy hands it over.
pub(crate) fn headers(bytes: &[u8]) -> bool {
    let headers = Headers::new(bytes.to_vec());
    let mut read = 0;
    for (name, value) in headers.iter() {
        read += name.len() + value.len() + 2;
    }
    assert!(read <= bytes.len(), "no byte is read twice");
    answer::of(503, headers.get("grpc-status").is_some(), &headers);
    read > 0
}

/// The bytes are a path or a key, whose first byte separates several.
pub(crate) fn key(bytes: &[u8]) -> bool {
    let one = keys(Some(bytes), None, None);
    assert_eq!(one.as_slice(), [KeyHash::of(bytes)]);
    let several = keys(Some(bytes), bytes.first().copied(), None);
    assert!(several.as_slice().len() <= MAX_KEYS);
    let segment = key_in_path("/v1/{key}/run", bytes);
    segment.is_some_and(|segment| !segment.is_empty() && !segment.contains(&b'/'))
}

/// The bytes are a body, whose first one says where its chunks end.
pub(crate) fn body(bytes: &[u8]) -> bool {
    let pointer = Pointer::parse("/a/0").expect("it is one");
    let chunk = 1 + usize::from(bytes.first().copied().unwrap_or(0) % 16);
    let [whole, parts] = [bytes.len().max(1), chunk].map(|chunk| {
        [Body::prompt(16), Body::value(&pointer)].map(|mut body| {
            bytes.chunks(chunk).for_each(|part| body.read(part));
            body.end();
            (body.is_malformed(), body.names())
        })
    });
    assert_eq!(whole, parts);
    let [(is_malformed, names), (_, value)] = whole;
    assert!(names.len() <= MAX_KEYS && value.len() <= 1);
    if let Ok(document) = serde_json::from_slice::<serde_json::Value>(bytes) {
        assert!(!is_malformed, "{document}");
    }
    !names.is_empty()
}

/// What the owner of the stream wrote into shared data, and the index above all.
pub(crate) fn index(bytes: &[u8]) -> bool {
    let Some(mut index) = message::<Index>(bytes) else {
        return false;
    };
    let all: Vec<_> = index.entries.clone();
    for entry in &all {
        let at = index.get(entry.kind(), &entry.name);
        assert!(at.is_some());
        index.fresh_table(&entry.name, NOW);
        index.insert(entry.kind(), &entry.name, entry.meta(), entry.says(), NOW);
        assert_eq!(
            index.get(entry.kind(), &entry.name).map(|new| new.meta()),
            Some(entry.meta())
        );
    }
    // Else a request for all shards would have no end.
    let tables = all.iter().map(|entry| entry.name.clone()).collect();
    let shards = all.iter().map(|entry| u64::from(entry.cache_shards));
    if shards.sum::<u64>() <= 1 << 16 {
        index.shards_of(&tables);
    }
    weir_tables::v1::VmRecord::decode(bytes).ok();
    !all.is_empty()
}

/// Who owns the stream, and which configuration is the newest.
pub(crate) fn lease(bytes: &[u8]) -> bool {
    let mut generations = Generations::decode(bytes);
    let (given, _) = generations.of(7, true);
    assert!(generations.encode().len() <= bytes.len() + 16);
    assert_eq!(generations.of(7, false), (given, false));
    let Some(lease) = Lease::decode(bytes) else {
        return false;
    };
    assert_eq!(lease.encode().as_slice(), bytes);
    true
}
