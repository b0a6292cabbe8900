// SPDX-License-Identifier: Apache-2.0
//! All of weir-control in the test's own process, with one cluster `rules`.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::DropGuard;

use crate::waits::until;
use crate::{http, inside};

pub(crate) struct Control {
    pub(crate) admin: SocketAddr,
    pub(crate) xds: SocketAddr,
    folder: TempDir,
    _shutdown: DropGuard,
}

fn text(cluster: &str) -> String {
    let free = "{ listen: \"127.0.0.1:0\" }";
    format!("xds: {free}\nadmin: {free}\nclusters: {{ rules: {{ {cluster} }} }}\n")
}

impl Control {
    /// With these settings of the cluster, and files beside the configuration.
    pub(crate) async fn start(cluster: &str, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, contents) in files {
            std::fs::write(folder.path().join(name), contents).unwrap();
        }
        let path = folder.path().join("c.yaml");
        std::fs::write(&path, text(cluster)).unwrap();
        let control = inside::start(path).await;
        Self {
            admin: control.admin,
            xds: control.xds,
            folder,
            _shutdown: control.ends,
        }
    }

    /// Where the configuration is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Other settings of the cluster.
    pub(crate) fn configure(&self, cluster: &str) {
        std::fs::write(self.folder().join("c.yaml"), text(cluster)).unwrap();
    }

    pub(crate) async fn page(&self, path: &str) -> (u16, String) {
        http::get(self.admin, path).await.unwrap()
    }

    /// The cluster in `/tables`, once it looks like this.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let page = self
            .tables(what, |page| is(&page["clusters"]["rules"]))
            .await;
        page["clusters"]["rules"].clone()
    }

    /// All of `/tables`, once it looks like this.
    pub(crate) async fn tables(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, async || {
            let page: Value = serde_json::from_str(&self.page("/tables").await.1).unwrap();
            if is(&page) { Ok(page) } else { Err(page) }
        })
        .await
    }

    /// Waits until the cluster has a table with the hosts of these addresses.
    pub(crate) async fn has(&self, addresses: &[&str]) -> Value {
        let what = format!("{addresses:?}");
        self.until(&what, |cluster| {
            !cluster["version"].is_null() && hosts(cluster) == addresses
        })
        .await
    }
}

/// Addresses, sorted.
pub(crate) fn hosts(cluster: &Value) -> Vec<&str> {
    let hosts = cluster["hosts"].as_array().into_iter().flatten();
    hosts.filter_map(|host| host["address"].as_str()).collect()
}

/// What is complained of, in one text.
pub(crate) fn complaints(cluster: &Value, source: &str) -> String {
    let all = cluster["sources"][source]["complaints"].as_array();
    let all = all.into_iter().flatten().filter_map(Value::as_str);
    all.collect::<Vec<_>>().join("; ")
}
