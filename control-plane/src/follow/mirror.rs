// SPDX-License-Identifier: Apache-2.0
//! What was mirrored so far. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use weir_fleet::snapshot::{Resource, Snapshot};
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, Meta};

use crate::xds::types;

/// Characters of a resource's name in a refusal.
const MAX_NAME_SHOWN: usize = 64;

/// Resources as they came. A type that has not come yet is not there, which is not the same as empty.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    snapshot: Snapshot,
}

impl Mirror {
    /// All that was mirrored.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::new(self.snapshot.clone())
    }

    /// What it has of a type, by name.
    pub fn versions(&self, kind: &str) -> HashMap<String, String> {
        let resources = self.snapshot.of_type(kind).into_iter();
        let resources = resources.flat_map(|resources| resources.iter());
        resources
            .map(|(name, resource)| (name.clone(), resource.version.to_string()))
            .collect()
    }

    /// Takes in what the leader of this lock index says; why something was not taken.
    ///
    /// A leader that has just begun still pushes what it mirrored itself: that is taken by those who have
    /// nothing, and nobody else goes back to it.
    pub fn take(
        &mut self,
        response: &discovery::DeltaDiscoveryResponse,
        index: u64,
    ) -> Option<String> {
        let Some(kind) = known(&response.type_url) else {
            return Some("not asked for".to_owned());
        };
        let resources = self.snapshot.resources.entry(kind).or_default();
        let resources = Arc::make_mut(resources);
        let mut refused = None;
        for resource in &response.resources {
            // Envoy's types have versions of another kind.
            let old = resource.version.parse().ok().and_then(Meta::fence);
            if old.is_some_and(|old| old < index) && resources.contains_key(&resource.name) {
                // A version that was parsed is short and a number.
                let name = resource.name.chars().take(MAX_NAME_SHOWN);
                let name: String = name.flat_map(char::escape_debug).collect();
                refused = Some(format!(
                    "{name}: {} is of an older leader than the one of lock index {index}",
                    resource.version
                ));
                continue;
            }
            let body = resource.resource.as_ref().map(|any| any.value.clone());
            let taken = Resource {
                version: resource.version.as_str().into(),
                body: Bytes::from(body.unwrap_or_default()),
            };
            resources.insert(resource.name.clone(), taken);
        }
        for name in &response.removed_resources {
            resources.remove(name);
        }
        refused
    }
}

/// The type URL as it is written here.
fn known(type_url: &str) -> Option<&'static str> {
    let ours = [HOST_TABLE_TYPE, CACHE_SHARD_TYPE];
    let mut all = ours.into_iter().chain(types::ORDER);
    all.find(|kind| *kind == type_url)
}
