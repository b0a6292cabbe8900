// SPDX-License-Identifier: Apache-2.0
//! The hosts of a cluster from Kubernetes.
//!
//! ```text
//!  EndpointSlices of a service ── Follower ──> Slices ─┐
//!  an InferencePool, its pods ── two Followers ─> Pods ─┴─ read (pure) ──> Answered ──> membership
//! ```

mod answer;
mod pods;
mod pool;
mod read;
mod slices;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use weir_fleet::poll::PollError;

use super::consul::encoded;
use super::discovery::{Answered, Found, Patience, Said};
use crate::config::{Backend, Kubernetes, Registry};
use crate::kube::follower::{Follower, WATCH};
use crate::kube::objects::Kept;
use crate::kube::questions::Questions;
use slices::Slices;

/// Asks until nobody listens.
pub(super) async fn run(
    cluster: Arc<str>,
    settings: Arc<Kubernetes>,
    news: mpsc::Sender<Answered>,
) {
    Asker {
        cluster,
        settings,
        news,
        patience: Patience::default(),
        watch: WATCH,
    }
    .run()
    .await;
}

/// Who is there. Also tries whether a watch is allowed.
pub(super) async fn hosts(settings: &Kubernetes) -> Result<Found, PollError> {
    match &settings.backend {
        Backend::Service(name, _) => {
            let slices: Slices = asked_once(settings, &path(settings, name)).await?;
            Ok(slices.read(settings))
        }
        Backend::Pool(name) => pool::hosts(settings, name).await,
    }
}

/// What there is at a path. Also tries whether a watch is allowed.
async fn asked_once<K: Kept>(settings: &Kubernetes, path: &str) -> Result<K, PollError> {
    let answer = Patience::default().answer;
    let questions = Questions::new(&settings.access, path, answer)?;
    let objects = questions.list().await?;
    questions.watch(&objects, WATCH).await?;
    Ok(objects.kept)
}

/// Who asks for one cluster.
#[derive(Clone, Debug)]
struct Asker {
    cluster: Arc<str>,
    settings: Arc<Kubernetes>,
    news: mpsc::Sender<Answered>,
    patience: Patience,
    watch: Duration,
}

impl Asker {
    async fn run(self) {
        let settings = self.settings.clone();
        match &settings.backend {
            Backend::Service(name, _) => self.service(name).await,
            Backend::Pool(name) => pool::run(self, name).await,
        }
    }

    async fn service(self, name: &str) {
        let (path, news) = (path(&self.settings, name), self.news.clone());
        let follower = self.follower(path, news, |said: Result<&Slices, PollError>| {
            self.answered(said.map(|slices| slices.read(&self.settings)))
        });
        follower.run().await;
    }

    fn follower<Tell, News>(
        &self,
        path: String,
        news: mpsc::Sender<News>,
        tell: Tell,
    ) -> Follower<Tell, News> {
        Follower {
            access: self.settings.access.clone(),
            path,
            patience: self.patience,
            watch: self.watch,
            tell,
            news,
        }
    }

    fn answered(&self, said: Result<Found, PollError>) -> Answered {
        Answered {
            cluster: self.cluster.clone(),
            registry: Registry::Kubernetes(self.settings.clone()),
            said: Said::Hosts(said),
        }
    }
}

/// Where the slices of one service are.
fn path(settings: &Kubernetes, service: &str) -> String {
    let namespace = &settings.namespace;
    let selector = format!("kubernetes.io/service-name={service}");
    format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector={}",
        encoded(&selector)
    )
}

#[cfg(test)]
mod tests;
