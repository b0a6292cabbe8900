// SPDX-License-Identifier: Apache-2.0
//! The hosts of an InferencePool (gateway-api-inference-extension.sigs.k8s.io, API v1).
//!
//! ```text
//!  the pool ── Follower ──> selector, ports ── another one: anew ──> its pods ── Follower ──> Pods ── read ──> Answered
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use weir_fleet::poll::PollError;

use super::pods::Pods;
use super::{Asker, asked_once, encoded};
use crate::config::Kubernetes;
use crate::config::policies::POOLS;
use crate::kube::objects::{Kept, Metadata, or_none};
use crate::sources::discovery::Found;

/// A pool, as far as it is read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Pool {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    selector: Selector,
    #[serde(deserialize_with = "or_none")]
    target_ports: Vec<TargetPort>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct TargetPort {
    number: u16,
}

/// The one that is asked for.
#[derive(Debug, Default)]
pub(super) struct One(Option<Pool>);

impl Kept for One {
    type Object = Pool;

    const RIGHT: &'static str =
        "get, list and watch of inferencepools in inference.networking.k8s.io";

    fn metadata(pool: &Pool) -> &Metadata {
        &pool.metadata
    }

    fn put(&mut self, pool: Pool) -> Result<(), PollError> {
        self.0 = Some(pool);
        Ok(())
    }

    fn remove(&mut self, _name: &str) {
        self.0 = None;
    }
}

/// Asks until nobody listens.
pub(super) async fn run(asker: Asker, name: &str) {
    let (told, mut pools) = mpsc::channel(1);
    let path = path(&asker.settings, name);
    let follower = asker.follower(path, told, |said: Result<&One, PollError>| {
        said.map(|one| one.0.as_ref().map(|pool| pool.spec.clone()))
    });
    // Both end with this.
    let _asking = AbortOnDropHandle::new(tokio::spawn(follower.run()));
    let mut of_pods = None;
    let mut known = None;
    loop {
        let said = tokio::select! {
            said = pools.recv() => said,
            () = asker.news.closed() => return,
            // Who keeps this task starts both again.
            () = ended(&mut of_pods) => return,
        };
        let said = match said {
            None => return,
            Some(Ok(spec)) if known.as_ref() == Some(&spec) => continue,
            Some(Ok(spec)) => {
                of_pods = None;
                known = Some(spec.clone());
                match spec {
                    Some(spec) => {
                        let asking = tokio::spawn(pods(asker.clone(), spec));
                        of_pods = Some(AbortOnDropHandle::new(asking));
                        continue;
                    }
                    None => Ok(missing(&asker.settings, name)),
                }
            }
            // What comes next is told again, be it the same.
            Some(Err(error)) => {
                known = None;
                Err(error)
            }
        };
        if asker.news.send(asker.answered(said)).await.is_err() {
            return;
        }
    }
}

/// Returns when the task has ended. None should by itself: it has panicked.
async fn ended(task: &mut Option<AbortOnDropHandle<()>>) {
    match task {
        Some(task) => drop(task.await),
        None => std::future::pending().await,
    }
}

async fn pods(asker: Asker, spec: Spec) {
    let settings = asker.settings.clone();
    let path = path_of_pods(&settings, &spec.selector);
    let (news, ports) = (asker.news.clone(), spec.ports());
    let follower = asker.follower(path, news, |said: Result<&Pods, PollError>| {
        asker.answered(said.map(|pods| pods.read(&ports, &settings)))
    });
    follower.run().await;
}

/// Who is there, once. Also tries whether watches are allowed.
pub(super) async fn hosts(settings: &Kubernetes, name: &str) -> Result<Found, PollError> {
    let pool: One = asked_once(settings, &path(settings, name)).await?;
    let Some(Pool { spec, .. }) = pool.0 else {
        return Ok(missing(settings, name));
    };
    let path = path_of_pods(settings, &spec.selector);
    let pods: Pods = asked_once(settings, &path).await?;
    Ok(pods.read(&spec.ports(), settings))
}

impl Spec {
    fn ports(&self) -> Vec<u16> {
        self.target_ports.iter().map(|port| port.number).collect()
    }
}

fn missing(settings: &Kubernetes, name: &str) -> Found {
    let namespace = &settings.namespace;
    Found {
        complaints: vec![format!("namespace {namespace} has no InferencePool {name}")],
        ..Found::default()
    }
}

fn path(settings: &Kubernetes, name: &str) -> String {
    let namespace = &settings.namespace;
    let one = encoded(&format!("metadata.name={name}")).to_string();
    format!("/apis/{POOLS}/v1/namespaces/{namespace}/inferencepools?fieldSelector={one}")
}

/// Without labels it selects nobody: an empty selector would be all pods of the namespace.
fn path_of_pods(settings: &Kubernetes, selector: &Selector) -> String {
    let labels = selector.match_labels.iter();
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let labels = match labels.is_empty() {
        true => "weir.dev/nobody=true".to_owned(),
        false => labels.join(","),
    };
    let namespace = &settings.namespace;
    format!(
        "/api/v1/namespaces/{namespace}/pods?labelSelector={}",
        encoded(&labels)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Access, Backend};

    #[test]
    fn a_pool_without_labels_selects_nobody_and_names_do_not_end_the_query() {
        let settings = Kubernetes {
            namespace: "ml".into(),
            backend: Backend::Pool("llama".into()),
            metrics_port: None,
            access: Access::Pod,
        };
        let path = |labels: &[(&str, &str)]| {
            let labels = labels
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()));
            let match_labels = labels.collect();
            path_of_pods(&settings, &Selector { match_labels })
        };
        let of = "/api/v1/namespaces/ml/pods?labelSelector=";
        assert_eq!(path(&[]), format!("{of}weir.dev%2Fnobody%3Dtrue"));
        let two = path(&[("app", "a&limit=1"), ("x", "y")]);
        assert_eq!(two, format!("{of}app%3Da%26limit%3D1%2Cx%3Dy"));
    }

    #[tokio::test]
    async fn the_end_of_who_asks_for_pods_ends_who_asks_for_the_pool() {
        let mut asking = None;
        let waits = tokio::time::timeout(std::time::Duration::ZERO, ended(&mut asking)).await;
        assert!(waits.is_err(), "there is none yet");
        let task = tokio::spawn(async { panic!("as it should") });
        asking = Some(AbortOnDropHandle::new(task));
        ended(&mut asking).await;
    }
}
