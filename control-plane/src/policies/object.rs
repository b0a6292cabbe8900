// SPDX-License-Identifier: Apache-2.0
//! A WeirPolicy as the API server has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use weir_fleet::poll::{Fault, PollError};

use crate::kube::objects::{Kept, Metadata};
use crate::sources::discovery::cut;

/// Of a namespace. Each is a cluster at least, and a cluster costs memory here and in sidecars.
const MOST: usize = 1000;

/// A WeirPolicy.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Object {
    /// As its status is written back.
    pub(crate) whole: Value,
    pub(crate) metadata: Metadata,
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

impl TryFrom<Value> for Object {
    type Error = String;

    fn try_from(whole: Value) -> Result<Self, String> {
        let metadata = Metadata::deserialize(&whole["metadata"]);
        let metadata = metadata.map_err(|error| cut(&error.to_string()))?;
        Ok(Self { whole, metadata })
    }
}

/// Those of one namespace, by name.
#[derive(Debug, Default)]
pub(crate) struct Namespace(pub(crate) BTreeMap<String, Arc<Object>>);

impl Kept for Namespace {
    type Object = Object;

    const RIGHT: &'static str = "get, list and watch of weirpolicies in weir.dev";

    fn metadata(object: &Object) -> &Metadata {
        &object.metadata
    }

    fn put(&mut self, object: Object) -> Result<(), PollError> {
        let name = object.metadata.name.clone();
        self.0.insert(name, Arc::new(object));
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
