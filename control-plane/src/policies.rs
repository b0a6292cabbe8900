// SPDX-License-Identifier: Apache-2.0
//! WeirPolicies: clusters that the owners of services write in Kubernetes, by Gateway API's policy attachment.
//!
//! ```text
//!  API server ── Follower, one a namespace ──> Objects (watch) ──> file::watch ── attach (pure) ──> Config
//!       ^                                                                 └─ Verdicts (watch)
//!       └──────────────── PUT …/status ── tell ── status::due (pure) <────────┴── View
//! ```
//! Every replica follows them, so that whoever leads next knows them; the one that leads writes what came of them.

pub(crate) mod attach;
#[cfg(test)]
mod crd;
pub(crate) mod object;
mod status;
mod tell;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::{info, warn};
use weir_fleet::poll::PollError;

use crate::config::{Access, Config, Error, Files, Loaded, Policies, policy};
use crate::kube::follower::{Follower, WATCH};
use crate::kube::questions::Questions;
use crate::sources::discovery::{Patience, cut};
use attach::{Attachments, Refused, Verdict};
use object::{Namespace, Objects};

pub(crate) use tell::tell;

/// What namespaces say that may wait.
const NEWS_WAITING: usize = 16;

/// A configuration, and what is known of the policies that are part of it.
#[derive(Debug)]
pub(crate) struct Attached {
    /// Of the files alone.
    pub(crate) base: Arc<Config>,
    pub(crate) config: Arc<Config>,
    pub(crate) files: Files,
    pub(crate) objects: Objects,
    pub(crate) attachments: Attachments,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Attached {
    /// The files, and the policies that the API server has now. A weir-control that did not know them would take their
    /// clusters away from sidecars.
    ///
    /// # Errors
    /// They cannot be read. Without `policies`, never.
    pub(crate) async fn begin(file: &Path, loaded: Loaded) -> anyhow::Result<Self> {
        let objects = match &loaded.config.policies {
            None => Objects::default(),
            Some(policies) => list(policies).await.with_context(|| {
                let file = file.display();
                format!("{file}: policies: weir-control does not start without them")
            })?,
        };
        let mut attached = Self {
            base: loaded.config.clone(),
            config: loaded.config,
            files: loaded.files,
            objects: Objects::default(),
            attachments: Attachments::default(),
            verdicts: Vec::new(),
        };
        attached.renew(objects);
        Ok(attached)
    }

    /// With these policies. Whether that makes another configuration: a status that was written does not.
    pub(crate) fn renew(&mut self, objects: Objects) -> bool {
        let (config, verdicts) = self.attachments.attach(&self.base, &objects);
        for verdict in &verdicts {
            let before = self
                .verdicts
                .iter()
                .find(|it| it.object.id() == verdict.object.id());
            let said = |verdict: &Verdict| verdict.refused.as_ref().map(Refused::to_string);
            if let Some(why) =
                said(verdict).filter(|why| before.and_then(said).as_ref() != Some(why))
            {
                warn!(policy = %verdict.object.id(), why, "a WeirPolicy is refused");
            }
        }
        let same = self.config.clusters.len() == config.clusters.len()
            && config.clusters.iter().all(|(name, cluster)| {
                let before = self.config.clusters.get(name);
                before.is_some_and(|before| Arc::ptr_eq(before, cluster))
            });
        (self.config, self.verdicts) = (Arc::new(config), verdicts);
        self.objects = objects;
        !same
    }
}

/// Names of the clusters that the `spec` of the policy `id` (`namespace/name`) makes, as JSON.
///
/// # Errors
/// Why it is refused, with the field.
pub fn read(id: &str, spec: &[u8]) -> Result<Vec<String>, Error> {
    let spec = serde_json::from_slice(spec).map_err(|error| Error {
        file: id.into(),
        line: 0,
        field: String::new(),
        reason: cut(&error.to_string()),
    })?;
    let namespace = id.split('/').next().unwrap_or_default();
    let read = policy::read(id, namespace, &spec, &Access::Pod);
    Ok(read.clusters?.into_iter().map(|(name, _)| name).collect())
}

async fn list(policies: &Policies) -> Result<Objects, PollError> {
    let answer = Patience::default().answer;
    let mut all = Objects::new();
    for namespace in &policies.namespaces {
        let questions = Questions::new(&policies.access, &path(namespace), answer)?;
        all.extend(of(&questions.list::<Namespace>().await?.kept));
    }
    Ok(all)
}

fn of(namespace: &Namespace) -> Objects {
    let objects = namespace.0.values();
    objects
        .map(|object| (object.id(), object.clone()))
        .collect()
}

fn path(namespace: &str) -> String {
    format!("/apis/weir.dev/v1alpha1/namespaces/{namespace}/weirpolicies")
}

/// Follows those of all namespaces for as long as the process lasts. What was known stays while the server is away.
pub(crate) async fn follow(policies: Policies, objects: watch::Sender<Objects>) {
    let (news, mut told) = mpsc::channel(NEWS_WAITING);
    let mut asking = JoinSet::new();
    for namespace in policies.namespaces {
        let follower = Follower {
            access: policies.access.clone(),
            path: path(&namespace),
            patience: Patience::default(),
            watch: WATCH,
            tell: move |said: Result<&Namespace, PollError>| (namespace.clone(), said.map(of)),
            news: news.clone(),
        };
        asking.spawn(follower.run());
    }
    let mut failing: BTreeMap<String, String> = BTreeMap::new();
    while let Some((namespace, said)) = told.recv().await {
        match said {
            Ok(newest) => {
                if failing.remove(&namespace).is_some() {
                    info!(namespace, "WeirPolicies are read again");
                }
                objects.send_if_modified(|all| {
                    let before = all.clone();
                    all.retain(|id, _| id.namespace != namespace);
                    all.extend(newest);
                    *all != before
                });
            }
            Err(error) => {
                let error = error.to_string();
                if failing.insert(namespace.clone(), error.clone()).as_ref() != Some(&error) {
                    warn!(namespace, error, "WeirPolicies stay as they were read last");
                }
            }
        }
    }
}
