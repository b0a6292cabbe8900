// SPDX-License-Identifier: Apache-2.0
//! What every handler shares.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::HeaderValue;
use axum::response::Response;
use prometheus_client::registry::Registry;
use weir_executor::{Load, Spent, Work};

use crate::host::Host;
use crate::metrics::Families;
use crate::orca;
use crate::picture::Picture;
use crate::priorities::Priorities;

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
        })
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
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).ok()?;
        Some(text)
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
        let text = load.map(|load| orca::text(load, &self.classes, spent));
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
