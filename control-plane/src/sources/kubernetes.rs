// SPDX-License-Identifier: Apache-2.0
//! The hosts of a cluster from Kubernetes.
//!
//! ```text
//!  EndpointSlices of the service ── Follower ──> Slices ── read (pure) ──> Answered ──> membership
//! ```

mod answer;
mod read;
mod slices;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use weir_fleet::poll::PollError;

use super::consul::encoded;
use super::discovery::{Answered, Found, Patience, Said};
use crate::config::{Kubernetes, Registry};
use crate::kube::follower::{Follower, WATCH};
use crate::kube::objects::Objects;
use crate::kube::questions::Questions;
use slices::Slices;

/// Asks until nobody listens.
pub(super) async fn run(
    cluster: Arc<str>,
    settings: Arc<Kubernetes>,
    news: mpsc::Sender<Answered>,
) {
    let patience = Patience::default();
    follow(cluster, settings, news, (patience, WATCH)).await;
}

async fn follow(
    cluster: Arc<str>,
    settings: Arc<Kubernetes>,
    news: mpsc::Sender<Answered>,
    (patience, watch): (Patience, Duration),
) {
    let follower = Follower {
        access: settings.access.clone(),
        path: path(&settings),
        patience,
        watch,
        tell: |slices: Result<&Slices, PollError>| Answered {
            cluster: cluster.clone(),
            registry: Registry::Kubernetes(settings.clone()),
            said: Said::Hosts(slices.map(|slices| slices.read(&settings))),
        },
        news,
    };
    follower.run().await;
}

/// Who is there. Also tries whether a watch is allowed.
pub(super) async fn hosts(settings: &Kubernetes) -> Result<Found, PollError> {
    let answer = Patience::default().answer;
    let questions = Questions::new(&settings.access, &path(settings), answer)?;
    let slices: Objects<Slices> = questions.list().await?;
    questions.watch(&slices, WATCH).await?;
    Ok(slices.kept.read(settings))
}

/// Where the slices of one service are.
fn path(settings: &Kubernetes) -> String {
    let Kubernetes {
        namespace, service, ..
    } = settings;
    let selector = format!("kubernetes.io/service-name={service}");
    format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector={}",
        encoded(&selector)
    )
}

#[cfg(test)]
mod tests;
