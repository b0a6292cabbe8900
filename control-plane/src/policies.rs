// SPDX-License-Identifier: Apache-2.0
//! WeirPolicies: clusters that the owners of services write in Kubernetes, by Gateway API's policy attachment.
//!
//! ```text
//!  API server ── Follower, one a namespace ──> Objects (watch) ──> file::watch ── attach (pure) ──> Config
//!       ^                                                                 └─ Verdicts (watch)
//!       └──────────────── PATCH …/status ── tell ── status::due (pure) <────────┴── View
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
use weir_fleet::poll::{Fault, PollError};

use crate::config::{Access, Config, Error, Files, Loaded, Policies, policy};
use crate::kube::follower::{Follower, WATCH};
use crate::kube::questions::Questions;
use crate::sources::discovery::{Patience, cut};
use attach::{Attachments, Refused, Verdict};
use object::{Id, Namespace, Objects};

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
    /// As they were when it began.
    pub(crate) objects: Objects,
    attachments: Attachments,
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
            attachments: Attachments::default(),
            verdicts: Vec::new(),
            objects: Objects::default(),
        };
        attached.renew(&objects);
        attached.objects = objects;
        Ok(attached)
    }

    /// With these policies. Whether that makes another configuration: a status that was written does not.
    pub(crate) fn renew(&mut self, objects: &Objects) -> bool {
        let (config, verdicts) = self.attachments.attach(&self.base, objects);
        let said = |verdict: &Verdict| verdict.refused.as_ref().map(Refused::to_string);
        let before = self.verdicts.iter().map(|it| (it.object.id(), said(it)));
        let before: BTreeMap<Id, Option<String>> = before.collect();
        for verdict in &verdicts {
            let id = verdict.object.id();
            if let Some(why) =
                said(verdict).filter(|why| before.get(&id) != Some(&Some(why.clone())))
            {
                warn!(policy = %id, why, "a WeirPolicy is refused");
            }
        }
        let same = self.config.clusters.len() == config.clusters.len()
            && config.clusters.iter().all(|(name, cluster)| {
                let before = self.config.clusters.get(name);
                before.is_some_and(|before| Arc::ptr_eq(before, cluster))
            });
        (self.config, self.verdicts) = (Arc::new(config), verdicts);
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
    let clusters = policy::read(id, namespace, Some(&spec), &Access::Pod)?;
    Ok(clusters.into_iter().map(|(name, _)| name).collect())
}

/// Those of all namespaces, but for one that cannot be read whatever is tried: its owners keep nobody else from theirs.
async fn list(policies: &Policies) -> Result<Objects, PollError> {
    let answer = Patience::default().answer;
    let mut all = Objects::new();
    for namespace in &policies.namespaces {
        let questions = Questions::new(&policies.access, &path(namespace), answer)?;
        match questions.list::<Namespace>().await {
            Ok(found) => all.extend(of(&found.kept)),
            Err(error) if matches!(error.fault, Fault::Denied | Fault::TooLarge) => {
                let error = error.to_string();
                warn!(namespace, error, "its WeirPolicies are not known");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn of(namespace: &Namespace) -> Objects {
    let objects = namespace.all.values();
    objects
        .map(|object| (object.id(), object.clone()))
        .collect()
}

fn path(namespace: &str) -> String {
    format!("/apis/weir.dev/v1alpha1/namespaces/{namespace}/weirpolicies")
}

/// Follows those of all namespaces for as long as the process lasts, asked as the newest configuration says. What was
/// known stays while the server is away.
pub(crate) async fn follow(
    mut configs: watch::Receiver<Arc<Config>>,
    objects: watch::Sender<Objects>,
) {
    let (news, mut told) = mpsc::channel(NEWS_WAITING);
    let mut asking = JoinSet::new();
    let (mut asked, mut failing) = (None, BTreeMap::new());
    loop {
        let newest = configs.borrow_and_update().policies.clone();
        if let Some(policies) = newest.filter(|newest| asked.as_ref() != Some(newest)) {
            asking.abort_all();
            for follower in followers(&policies, &news) {
                asking.spawn(follower);
            }
            asked = Some(policies);
        }
        let (namespace, said): (String, Result<Told, PollError>) = tokio::select! {
            Some(told) = told.recv() => told,
            Ok(()) = configs.changed() => continue,
            Some(ended) = asking.join_next() => {
                // Nobody would hear of the namespace any more.
                if let Err(error) = ended && let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
                continue;
            }
            else => return,
        };
        let why = match said {
            Ok(told) => {
                objects.send_if_modified(|all| replace(all, &namespace, told.objects));
                told.is_full
                    .then(|| "there are more than are looked at".to_owned())
            }
            Err(error) => Some(error.to_string()),
        };
        let before = match &why {
            Some(why) => failing.insert(namespace.clone(), why.clone()),
            None => failing.remove(&namespace),
        };
        match why {
            Some(why) if before.as_ref() != Some(&why) => {
                warn!(
                    namespace,
                    why, "WeirPolicies stay as they were read last, or some do"
                );
            }
            None if before.is_some() => info!(namespace, "WeirPolicies are read again"),
            _ => {}
        }
    }
}

/// Those of one namespace.
struct Told {
    objects: Objects,
    is_full: bool,
}

fn followers(
    policies: &Policies,
    news: &mpsc::Sender<(String, Result<Told, PollError>)>,
) -> Vec<impl Future<Output = ()> + Send + use<>> {
    let follower = |namespace: &String| {
        let path = path(namespace);
        let namespace = namespace.clone();
        let tell = move |said: Result<&Namespace, PollError>| {
            let told = said.map(|kept| Told {
                objects: of(kept),
                is_full: kept.is_full,
            });
            (namespace.clone(), told)
        };
        Follower {
            access: policies.access.clone(),
            path,
            patience: Patience::default(),
            watch: WATCH,
            tell,
            news: news.clone(),
        }
        .run()
    };
    policies.namespaces.iter().map(follower).collect()
}

/// Whether that changes anything.
fn replace(all: &mut Objects, namespace: &str, newest: Objects) -> bool {
    let old = all.iter().filter(|(id, _)| id.namespace == namespace);
    if old.eq(&newest) {
        return false;
    }
    all.retain(|id, _| id.namespace != namespace);
    all.extend(newest);
    true
}
