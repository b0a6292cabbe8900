// SPDX-License-Identifier: Apache-2.0
//! Replicas in one process that contend for a Lease of a played API server.

use std::time::Duration;

use tokio::task::JoinHandle;

use super::lock::lease::fake::{Does, Fake};
use super::*;
use crate::config::replicas;

struct Replica {
    roles: watch::Receiver<Role>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
    /// What it would hear from, and nobody listens to.
    _ends: (
        watch::Sender<Arc<Config>>,
        mpsc::Sender<Depose>,
        JoinHandle<()>,
    ),
}

fn start(fake: &Fake, name: &str, duration: Duration) -> Replica {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let text = "clusters: { r: { hosts: [ { address: \"127.0.0.1:9\" } ] } }\n";
    std::fs::write(&path, text).unwrap();
    let config = crate::config::load(&path).map_err(|(error, _)| error);
    let (configs, newest) = watch::channel(config.unwrap().config);
    let (deposes, deposed) = mpsc::channel(1);
    let (updates, mut news) = mpsc::channel(1);
    let (roles, seen) = watch::channel(Role::Waiting);
    let address = format!("{name}:1");
    let replicas = Replicas {
        lock: replicas::Lock::Lease(fake.settings(duration)),
        address: address.clone(),
        name: name.to_owned(),
        tls: None,
    };
    let shutdown = CancellationToken::new();
    let run = run(
        Arc::new(replicas),
        newest,
        address,
        roles,
        deposed,
        updates,
        shutdown.clone(),
    );
    let listens = tokio::spawn(async move { while news.recv().await.is_some() {} });
    Replica {
        roles: seen,
        shutdown,
        task: tokio::spawn(run),
        _ends: (configs, deposes, listens),
    }
}

impl Replica {
    /// Its role, once it is like this.
    async fn is(&mut self, is: impl FnMut(&Role) -> bool) -> Role {
        let role = timeout(Duration::from_secs(60), self.roles.wait_for(is)).await;
        role.expect("in time").expect("a role").clone()
    }

    async fn follows(&mut self, name: &str) -> u64 {
        let is = |role: &Role| matches!(role, Role::Following(leader) if leader.name == name);
        self.is(is).await.index()
    }

    fn now(&self) -> Role {
        self.roles.borrow().clone()
    }
}

#[tokio::test]
async fn a_leader_that_ends_gives_the_lease_up_and_another_one_leads() {
    let fake = Fake::start().await;
    // So long that nobody takes what was not given up.
    let duration = Duration::from_secs(600);
    let mut a = start(&fake, "a", duration);
    assert_eq!(a.is(Role::leads).await.index(), 1);
    let b = start(&fake, "b", Duration::from_secs(1));
    a.shutdown.cancel();
    a.task.await.unwrap();
    assert!(fake.spec()["holderIdentity"].is_null());
    let mut b = b;
    assert_eq!(b.is(Role::leads).await.index(), 2);
}

#[tokio::test]
async fn who_cannot_reach_the_api_server_has_stopped_when_another_one_leads() {
    let duration = Duration::from_secs(3);
    let fake = Fake::start().await;
    let cut = fake.beside().await;
    let mut a = start(&cut, "a", duration);
    assert_eq!(a.is(Role::leads).await.index(), 1);
    let mut b = start(&fake, "b", duration);
    assert_eq!(b.follows("a").await, 1);
    cut.does(Does::Hang);
    assert_eq!(b.is(Role::leads).await.index(), 2);
    assert_eq!(a.now(), Role::Waiting);
    cut.does(Does::Answer);
    assert_eq!(a.follows("b").await, 2);
}

#[tokio::test]
async fn without_an_api_server_the_leader_stops_and_acts_alone_later_with_its_own_index() {
    let duration = Duration::from_secs(1);
    let fake = Fake::start().await;
    let mut a = start(&fake, "a", duration);
    assert_eq!(a.is(Role::leads).await.index(), 1);
    let mut b = start(&fake, "b", duration);
    assert_eq!(b.follows("a").await, 1);
    fake.does(Does::Fail(500));
    a.is(|role| *role == Role::Waiting).await;
    assert_eq!(a.is(Role::leads).await.index(), 1);
    assert!(
        matches!(b.now(), Role::Following(_)),
        "it has heard of nobody else"
    );
    // Else it would only renew what nobody has taken.
    fake.world.lock().unwrap().lease = None;
    fake.does(Does::Answer);
    let newer = |role: &Role| role.index() > 1;
    let (a, b) = tokio::join!(a.is(newer), b.is(newer));
    assert!(a.leads() != b.leads(), "{a} {b}");
}
