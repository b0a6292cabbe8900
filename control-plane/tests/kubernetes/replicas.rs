// SPDX-License-Identifier: Apache-2.0
//! Two weir-control that contend for a Lease in the real API server, with the Role that users apply.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::{Cluster, REPLICAS};
use crate::filter::Filter;
use crate::group::{Replica, index};
use crate::metered::Wire;

/// As short as it may be.
const SHORT: &str = "5s";

struct Group {
    cluster: Cluster,
    /// Kubeconfigs and the token that they name.
    folder: TempDir,
}

impl Group {
    async fn start() -> Option<Self> {
        let cluster = Cluster::start().await?;
        cluster.apply_role(REPLICAS).await;
        let folder = tempfile::tempdir().unwrap();
        let token = cluster.token("weir-control").await;
        std::fs::write(folder.path().join("token"), token).unwrap();
        Some(Self { cluster, folder })
    }

    /// One that asks the API server here, or at another address of it.
    fn replica(&self, name: &str, duration: &str, at: Option<SocketAddr>) -> Replica {
        let token = self.folder.path().join("token");
        let mut written = self.cluster.kube.kubeconfig_of(&token);
        if let Some(at) = at {
            written = written.replace(&self.address().to_string(), &at.to_string());
        }
        let kubeconfig = self.folder.path().join(name);
        std::fs::write(&kubeconfig, written).unwrap();
        let lease = json!({
            "namespace": "weir-system", "duration": duration, "kubeconfig": kubeconfig,
        });
        let replicas = json!({ "lease": lease, "address": "127.0.0.1:0", "name": name });
        Replica::start(None, name, json!({ "replicas": replicas }))
    }

    /// Where the API server is.
    fn address(&self) -> SocketAddr {
        let written = self
            .cluster
            .kube
            .kubeconfig_of(&self.folder.path().join("token"));
        let written: Value = serde_json::from_str(&written).unwrap();
        let url = written["clusters"][0]["cluster"]["server"]
            .as_str()
            .unwrap();
        url.strip_prefix("https://").unwrap().parse().unwrap()
    }

    /// Who holds the Lease, and how often it was taken.
    async fn holder(&self) -> (String, u64) {
        let spec = self.cluster.lease().await;
        let holder = spec["holderIdentity"].as_str().unwrap_or_default();
        let name = holder.split(' ').next().unwrap_or_default();
        (name.to_owned(), spec["leaseTransitions"].as_u64().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_killed_or_ends_is_followed_by_another_one() {
    let Some(group) = Group::start().await else {
        return;
    };
    let a = group.replica("a", SHORT, None);
    assert_eq!(a.leads().await, 1);
    let b = group.replica("b", SHORT, None);
    b.follows(&a).await;
    let filter = Filter::at(b.xds);
    filter.has_table_of(1).await;
    assert_eq!(group.holder().await, ("a".to_owned(), 1));
    // It has no time to say anything.
    a.signal("KILL");
    drop(a);
    assert_eq!(b.leads().await, 2);
    filter.has_table_of(2).await;
    assert_eq!(group.holder().await, ("b".to_owned(), 2));

    let mut b = b;
    let c = group.replica("c", "60s", None);
    c.follows(&b).await;
    b.signal("TERM");
    b.ends().await;
    assert!(b.log().contains("gives up what it leads"));
    assert_eq!(c.leads().await, 3);
    assert_eq!(group.holder().await, ("c".to_owned(), 3));
    assert!(filter.seen.lock().unwrap().refused.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_frozen_follows_and_what_it_had_built_is_not_taken() {
    let Some(group) = Group::start().await else {
        return;
    };
    let a = group.replica("a", SHORT, None);
    a.leads().await;
    let b = group.replica("b", SHORT, None);
    b.follows(&a).await;
    let mut filter = Filter::at(a.xds);
    filter.has_table_of(1).await;
    a.signal("STOP");
    filter.moves(b.xds);
    assert_eq!(b.leads().await, 2);
    filter.has_table_of(2).await;
    filter.moves(a.xds);
    a.signal("CONT");
    a.follows(&b).await;
    a.says("the lock was not renewed in time").await;
    filter.gets_more().await;
    let indices: Vec<u64> = {
        let seen = filter.seen.lock().unwrap();
        seen.taken.iter().filter_map(|it| it.0.fence()).collect()
    };
    assert!(indices.is_sorted(), "{indices:?}");
    assert_eq!(group.holder().await, ("b".to_owned(), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_cut_off_from_the_api_server_has_stopped_when_another_one_leads() {
    let Some(group) = Group::start().await else {
        return;
    };
    let wire = Wire::to(group.address()).await;
    let a = group.replica("a", "15s", Some(wire.address));
    a.leads().await;
    let b = group.replica("b", "15s", None);
    b.follows(&a).await;
    wire.cut();
    assert_eq!(b.leads().await, 2);
    // Looked at later, so that it is not what it was before.
    let page = a.until("its role", |_| true).await;
    assert_eq!(page["replica"]["role"], "waiting", "{page}");
    // Silence means that nobody may be there to lead; its tables are below those of whoever is.
    let alone = |page: &Value| page["replica"]["role"] == "leading";
    let page = a.until("its lead", alone).await;
    assert_eq!(index(&page), 1);
    let mut filter = Filter::at(b.xds);
    filter.has_table_of(2).await;
    filter.moves(a.xds);
    let fenced = |seen: &crate::filter::Seen| {
        let mut refused = seen.refused.iter();
        refused.any(|why| why.contains("is of an older leader than"))
    };
    filter.until("a refusal", fenced).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_the_right_is_named() {
    let Some(group) = Group::start().await else {
        return;
    };
    let stranger = group.cluster.token("stranger").await;
    std::fs::write(group.folder.path().join("token"), stranger).unwrap();
    let replica = group.replica("a", SHORT, None);
    let why =
        "a Role with get, create and update of the Lease weir-control in namespace weir-system";
    let denied = |page: &Value| {
        let complaint = page["replica"]["complaint"].as_str();
        complaint.is_some_and(|complaint| complaint.contains(why))
    };
    let page = replica.until(why, denied).await;
    assert_eq!(page["replica"]["role"], "waiting");
}
