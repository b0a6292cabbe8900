// SPDX-License-Identifier: Apache-2.0
//! From objects to clusters. Pure.
//!
//! ```text
//!  files' Config ─┐
//!  objects ───────┴─ attach (the oldest first) ──> Config with their clusters, a Verdict for each object
//!                       └─ in force: what was good stays where what is written now is not
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::object::{Id, Object, Objects};
use crate::config::policy::Clusters;
use crate::config::{Access, Config, Error, policy};

/// What came of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) object: Arc<Object>,
    pub(crate) refused: Option<Refused>,
    /// Those that it has in force, be it from before.
    pub(crate) clusters: Vec<String>,
}

/// Why what an object says is not in force.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refused {
    /// What is wrong with it.
    Invalid(Error),
    /// Who else has the cluster.
    Conflicted(String),
    /// Older policies of the namespace have as many clusters as it may have.
    TooMany,
}

/// Clusters of one namespace's policies: each asks for its hosts by a connection of its own, and takes memory here and in
/// sidecars.
const MOST_CLUSTERS: usize = 256;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(Error { field, reason, .. }) => write!(f, "{field}: {reason}"),
            Self::Conflicted(why) => f.write_str(why),
            Self::TooMany => write!(
                f,
                "older WeirPolicies of this namespace have the {MOST_CLUSTERS} clusters that it may have"
            ),
        }
    }
}

/// What is in force of the objects.
#[derive(Debug, Default)]
pub(crate) struct Attachments(BTreeMap<Id, InForce>);

#[derive(Debug)]
struct InForce {
    /// As it was written when it was good.
    object: Arc<Object>,
    access: Access,
    clusters: Clusters,
}

impl Attachments {
    /// The configuration with the clusters of these objects, and what came of each, in their order.
    pub(crate) fn attach(&mut self, base: &Config, objects: &Objects) -> (Config, Vec<Verdict>) {
        let mut config = base.clone();
        let Some(settings) = &base.policies else {
            return (config, Vec::new());
        };
        let is_there = |id: &Id, old: &mut InForce| {
            let object = objects.get(id);
            // Another object of that name is a new one.
            object.is_some_and(|object| object.metadata.uid == old.object.metadata.uid)
        };
        self.0.retain(is_there);
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        let written = base.clusters.keys();
        owners.extend(written.map(|name| (name.clone(), "weir-control.yaml".to_owned())));
        let mut verdicts = BTreeMap::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for object in oldest_first(objects) {
            let id = object.id();
            let left = places.entry(id.namespace.clone()).or_insert(MOST_CLUSTERS);
            let (clusters, refused) = self.judge(object, &settings.access, (&owners, *left));
            *left -= clusters.len();
            for (name, cluster) in &clusters {
                owners.insert(name.clone(), format!("WeirPolicy {id}"));
                config.clusters.insert(name.clone(), cluster.clone());
            }
            let verdict = Verdict {
                object: object.clone(),
                refused,
                clusters: clusters.into_iter().map(|(name, _)| name).collect(),
            };
            verdicts.insert(id, verdict);
        }
        (config, verdicts.into_values().collect())
    }

    /// What is in force of an object, and why that is not what it says.
    fn judge(
        &mut self,
        object: &Arc<Object>,
        access: &Access,
        (owners, left): (&BTreeMap<String, String>, usize),
    ) -> (Clusters, Option<Refused>) {
        let id = object.id();
        let old = self.0.get(&id);
        let same = old.filter(|old| old.object.spec == object.spec && old.access == *access);
        let said = match same {
            // So that whoever asks for their hosts goes on.
            Some(old) => Ok(old.clusters.clone()),
            None => policy::read(&id.to_string(), &id.namespace, object.spec.as_ref(), access)
                .map_err(Refused::Invalid),
        };
        let fits = |clusters: &Clusters| match taken(clusters, owners) {
            Some(why) => Err(Refused::Conflicted(why)),
            None if clusters.len() > left => Err(Refused::TooMany),
            None => Ok(()),
        };
        match said.and_then(|clusters| fits(&clusters).map(|()| clusters)) {
            Ok(clusters) => {
                let in_force = InForce {
                    object: object.clone(),
                    access: access.clone(),
                    clusters: clusters.clone(),
                };
                self.0.insert(id, in_force);
                (clusters, None)
            }
            Err(refused) => {
                let old = old.map(|old| &old.clusters);
                let stays = old.filter(|clusters| fits(clusters).is_ok());
                (stays.cloned().unwrap_or_default(), Some(refused))
            }
        }
    }
}

/// Who has one of these clusters already.
fn taken(clusters: &Clusters, owners: &BTreeMap<String, String>) -> Option<String> {
    let mut clusters = clusters.iter();
    clusters.find_map(|(name, _)| {
        let owner = owners.get(name)?;
        Some(format!("{owner} has the cluster {name}"))
    })
}

/// As conflicts between policies are decided (gateway-api.sigs.k8s.io/geps/gep-713): by age, then by name.
fn oldest_first(objects: &Objects) -> Vec<&Arc<Object>> {
    let mut all: Vec<_> = objects.values().collect();
    // Stable: those of one second stay in the order of their names.
    all.sort_by_key(|object| &object.metadata.creation_timestamp);
    all
}

#[cfg(test)]
mod tests;
