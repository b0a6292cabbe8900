// SPDX-License-Identifier: Apache-2.0
//! A WeirPolicy as the API server has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use weir_fleet::poll::{Fault, PollError};

use crate::kube::objects::{self, Kept};
use crate::sources::discovery::cut;

/// Of a namespace. Each is a cluster at least, and a cluster costs memory here and in sidecars.
const MOST: usize = 1000;

/// A WeirPolicy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    /// As its status is written back.
    pub(crate) whole: Value,
    pub(crate) metadata: Metadata,
}

/// What is read of its metadata.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    /// Counts what is written to its `spec`.
    pub(crate) generation: i64,
    /// To the second. Text, which sorts as the times do.
    pub(crate) creation_timestamp: String,
}

impl Object {
    pub(crate) fn id(&self) -> Id {
        let Metadata {
            namespace, name, ..
        } = &self.metadata;
        Id {
            namespace: namespace.clone(),
            name: name.clone(),
        }
    }

    pub(crate) fn spec(&self) -> &Value {
        &self.whole["spec"]
    }
}

/// Where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Those of all namespaces.
pub(crate) type Objects = BTreeMap<Id, Arc<Object>>;

/// As they come, with what every kind has.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Told {
    common: objects::Metadata,
    object: Object,
}

#[cfg(test)]
impl Told {
    pub(super) fn into_object(self) -> Object {
        self.object
    }
}

impl TryFrom<Value> for Told {
    type Error = String;

    fn try_from(whole: Value) -> Result<Self, String> {
        let read = |error: serde_json::Error| cut(&error.to_string());
        let metadata = &whole["metadata"];
        Ok(Self {
            common: objects::Metadata::deserialize(metadata).map_err(read)?,
            object: Object {
                metadata: Metadata::deserialize(metadata).map_err(read)?,
                whole,
            },
        })
    }
}

/// Those of one namespace, by name.
#[derive(Debug, Default)]
pub(crate) struct Namespace(pub(crate) BTreeMap<String, Arc<Object>>);

impl Kept for Namespace {
    type Object = Told;

    const RIGHT: &'static str = "get, list and watch of weirpolicies in weir.dev";

    fn metadata(told: &Told) -> &objects::Metadata {
        &told.common
    }

    fn put(&mut self, told: Told) -> Result<(), PollError> {
        let name = told.object.metadata.name.clone();
        self.0.insert(name, Arc::new(told.object));
        match self.0.len() > MOST {
            true => Err(PollError::new(
                Fault::TooLarge,
                format!("more than {MOST} WeirPolicies in a namespace"),
            )),
            false => Ok(()),
        }
    }

    fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}
