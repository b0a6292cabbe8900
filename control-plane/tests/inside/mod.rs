// SPDX-License-Identifier: Apache-2.0
//! A whole weir-control in the test's own process.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};
use weir_control::{Listeners, config, run};
use weir_processes::http;

pub(crate) struct Inside {
    pub(crate) xds: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// It ends when this is dropped.
    pub(crate) ends: DropGuard,
}

/// Starts one by its file.
pub(crate) async fn start(path: PathBuf) -> Inside {
    let loaded = config::load(&path).map_err(|(error, _)| error).unwrap();
    let listeners = Listeners::bind(&loaded.config).await.unwrap();
    let xds = listeners.xds.local_addr().unwrap();
    let admin = listeners.admin.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    tokio::spawn(run(
        path,
        loaded,
        listeners,
        Default::default(),
        shutdown.clone(),
    ));
    Inside {
        xds,
        admin,
        ends: shutdown.drop_guard(),
    }
}

impl Inside {
    /// A page of JSON; null where there is none yet.
    pub(crate) async fn page(&self, path: &'static str) -> Value {
        let admin = self.admin;
        let page = tokio::task::spawn_blocking(move || http::get(admin, path));
        page.await.unwrap().map_or(Value::Null, |page| {
            serde_json::from_str(&page.body).unwrap()
        })
    }
}
