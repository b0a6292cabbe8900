// SPDX-License-Identifier: Apache-2.0
//! Resources that are pushed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

/// Everything that is pushed at one moment. Clones share the resources.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Type URL → resource name → resource.
    pub resources: BTreeMap<&'static str, Arc<BTreeMap<String, Resource>>>,
    /// Nobody is served: another replica may know more.
    pub withheld: bool,
}

impl Snapshot {
    /// The resources of one type, if there are any.
    pub fn of_type(&self, type_url: &str) -> Option<&Arc<BTreeMap<String, Resource>>> {
        self.resources.get(type_url)
    }

    /// One resource, if it is known.
    pub fn get(&self, type_url: &str, name: &str) -> Option<&Resource> {
        let resource = self.resources.get(type_url)?.get(name);
        resource.filter(|resource| !resource.is_unknown())
    }
}

/// One resource as it travels. Two resources of one name are equal if their versions are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// `"<epoch hex>.<version>"` for weir.v1 types.
    pub version: Arc<str>,
    /// The encoded message, without its `Any`.
    pub body: Bytes,
}

impl Resource {
    /// Stands for one that exists and is not known yet: nothing is said of it, so that whoever has one from an
    /// earlier process keeps it.
    pub fn unknown() -> Self {
        Self {
            version: "".into(),
            body: Bytes::new(),
        }
    }

    /// Whether nothing may be said of it.
    pub fn is_unknown(&self) -> bool {
        self.version.is_empty()
    }
}
