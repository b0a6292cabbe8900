// SPDX-License-Identifier: Apache-2.0
//! A WeirPolicy as the API server has it, as much of it as is needed, and no more than that however large it is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use weir_fleet::poll::PollError;

use crate::kube::objects::{Kept, Metadata};

/// Of a namespace. Of more, that many are looked at.
const MOST: usize = 1000;

/// Bytes of a `spec`: one of every field that there is takes a tenth.
pub(crate) const LONGEST_SPEC: usize = 64 << 10;

/// Bytes of a status, which others write to as well.
const LONGEST_STATUS: usize = 64 << 10;

/// A WeirPolicy.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Whole")]
pub(crate) struct Object {
    pub(crate) metadata: Metadata,
    /// None: it is too long.
    pub(crate) spec: Option<Value>,
    /// `status.ancestors`. None: they are too long to be written again.
    pub(crate) ancestors: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct Whole {
    metadata: Metadata,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

impl From<Whole> for Object {
    fn from(whole: Whole) -> Self {
        let fits = |value: &Value, longest: usize| value.to_string().len() <= longest;
        let ancestors = &whole.status["ancestors"];
        let known = fits(ancestors, LONGEST_STATUS).then(|| ancestors.as_array().cloned());
        Self {
            spec: Some(whole.spec).filter(|spec| fits(spec, LONGEST_SPEC)),
            ancestors: known.map(Option::unwrap_or_default),
            metadata: whole.metadata,
        }
    }
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
}

/// Where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Those of all namespaces.
pub(crate) type Objects = BTreeMap<Id, Arc<Object>>;

/// Those of one namespace, by name.
#[derive(Debug, Default)]
pub(crate) struct Namespace {
    pub(crate) all: BTreeMap<String, Arc<Object>>,
    /// Whether there are more.
    pub(crate) is_full: bool,
}

impl Kept for Namespace {
    type Object = Object;

    const RIGHT: &'static str = "get, list and watch of weirpolicies in weir.dev";

    /// Each may have 1.5 MiB, of which little is kept.
    const PAGE: usize = 20;

    fn metadata(object: &Object) -> &Metadata {
        &object.metadata
    }

    fn put(&mut self, object: Object) -> Result<(), PollError> {
        let is_known = self.all.contains_key(&object.metadata.name);
        match is_known || self.all.len() < MOST {
            true => drop(
                self.all
                    .insert(object.metadata.name.clone(), Arc::new(object)),
            ),
            false => self.is_full = true,
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        self.all.remove(name);
    }

    /// There is room again, and a watch does not tell of those that were left out.
    fn lacks_some(&self) -> bool {
        self.is_full && self.all.len() < MOST
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: usize, spec: Value, status: Value) -> Object {
        let metadata =
            json!({ "name": name.to_string(), "namespace": "shop", "labels": { "a": "b" } });
        let whole = json!({ "metadata": metadata, "spec": spec, "status": status });
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn of_an_object_of_any_size_no_more_is_kept_than_is_read() {
        let long = "a".repeat(LONGEST_SPEC);
        let one = object(1, json!({ "policy": {} }), json!({ "ancestors": [1] }));
        assert_eq!(one.spec, Some(json!({ "policy": {} })));
        assert_eq!(one.ancestors, Some(vec![json!(1)]));
        let large = object(1, json!({ "a": long }), json!({ "ancestors": [long] }));
        assert_eq!((large.spec, large.ancestors), (None, None));
        assert_eq!(object(1, json!({}), Value::Null).ancestors, Some(vec![]));
    }

    #[test]
    fn of_more_objects_than_there_is_room_for_the_rest_is_left_out_until_there_is() {
        let mut namespace = Namespace::default();
        for name in 0..=MOST {
            namespace.put(object(name, json!({}), json!({}))).unwrap();
        }
        assert_eq!(namespace.all.len(), MOST);
        assert!(namespace.is_full && !namespace.lacks_some());
        // Those that are there may change.
        namespace
            .put(object(0, json!({ "a": 1 }), json!({})))
            .unwrap();
        assert_eq!(namespace.all["0"].spec, Some(json!({ "a": 1 })));
        namespace.remove("0");
        assert!(namespace.lacks_some());
    }
}
