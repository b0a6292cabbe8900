// SPDX-License-Identifier: Apache-2.0
//! What every handler shares.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::HeaderValue;
use axum::response::Response;
use prometheus_client::registry::Registry;
use weir_executor::{Load, Spent, Work};

use crate::host::Host;
use crate::metrics::Families;
use crate::orca;
use crate::picture::Picture;
use crate::priorities::Priorities;
use crate::utilisation::Utilisation;

/// A host and how it shows itself.
#[derive(Debug)]
pub struct App<W: Work> {
    pub(crate) host: Host<W>,
    pub(crate) priorities: Priorities,
    metrics: Families,
    registry: Registry,
    classes: Vec<u8>,
    id: HeaderValue,
    draining: AtomicBool,
    /// With so many cores; none: answers tell what Weir reads.
    utilisation: Option<(usize, Mutex<Utilisation>)>,
}

impl<W: Work> App<W> {
    /// `address` is where the host listens; answers name it.
    pub fn new(
        host: Host<W>,
        metrics: Families,
        priorities: Priorities,
        address: SocketAddr,
    ) -> anyhow::Result<Self> {
        let mut registry = Registry::default();
        metrics.register(&mut registry, "weir_host");
        Ok(Self {
            classes: priorities.classes(),
            id: HeaderValue::from_str(&address.to_string())?,
            draining: AtomicBool::new(false),
            host,
            priorities,
            metrics,
            registry,
            utilisation: None,
        })
    }

    /// Answers of this host of so many cores tell [`Utilisation`] instead of what Weir reads.
    #[must_use]
    pub fn telling_utilisation(mut self, cores: usize) -> Self {
        self.utilisation = Some((cores, Mutex::default()));
        self
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.metrics.drains();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn metrics_text(&self, picture: &Picture) -> Option<String> {
        self.metrics.show(picture, &self.classes);
        weir_pages::text(&self.registry).ok()
    }

    /// The page of metrics; none where the host is gone.
    pub async fn metrics_page(&self) -> Option<String> {
        let picture = self.host.look().await.ok()?;
        self.metrics_text(&picture)
    }

    /// Adds who answered, how loaded it is, and what an answer that is complete has cost.
    pub(crate) fn sign(
        &self,
        mut response: Response,
        load: Option<&Load>,
        spent: Option<&Spent>,
    ) -> Response {
        let headers = response.headers_mut();
        headers.insert("x-worker-id", self.id.clone());
        let text = load.map(|load| match &self.utilisation {
            None => orca::text(load, &self.classes, spent),
            Some((cores, answers)) => {
                let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.text(load.in_progress, *cores, Instant::now())
            }
        });
        if let Some(Ok(value)) = text.map(HeaderValue::try_from) {
            headers.insert(orca::HEADER, value);
        }
        response
    }

    /// Signs an answer that no job stands behind.
    pub(crate) async fn sign_now(&self, response: Response) -> Response {
        let load = self.host.look().await.map(|picture| picture.load);
        self.sign(response, load.ok().as_ref(), None)
    }
}
