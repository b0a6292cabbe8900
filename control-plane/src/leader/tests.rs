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
    /// What it would hear from, and what nobody takes of it.
    _ends: (
        watch::Sender<Arc<Config>>,
        mpsc::Sender<Depose>,
        mpsc::Receiver<News>,
    ),
}

/// A step of time.
const TICK: Duration = Duration::from_millis(100);
/// Of the runtime between two steps, in which questions and answers go on their way.
const TURNS: usize = 6;
/// As long as nothing has come of it.
const MOST: Duration = Duration::from_secs(300);
const DURATION: Duration = Duration::from_secs(15);

/// Time goes on only as a test says: no stall of the machine lets anything run out.
struct Clock(#[expect(dead_code, reason = "ends what blocks")] std::sync::mpsc::Sender<()>);

impl Clock {
    fn stop() -> Self {
        tokio::time::pause();
        let (ends, ended) = std::sync::mpsc::channel();
        // While something blocks, a paused clock does not go on by itself.
        tokio::task::spawn_blocking(move || ended.recv());
        Self(ends)
    }

    async fn tick(&self) {
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
        tokio::time::advance(TICK).await;
    }

    async fn run(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.tick().await;
        }
    }
}

fn start(fake: &Fake, name: &str, duration: Duration) -> Replica {
    start_with_room(fake, name, duration, 100)
}

/// With room for so much news.
fn start_with_room(fake: &Fake, name: &str, duration: Duration, room: usize) -> Replica {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let text = "clusters: { r: { hosts: [ { address: \"127.0.0.1:9\" } ] } }\n";
    std::fs::write(&path, text).unwrap();
    let config = crate::config::load(&path).map_err(|(error, _)| error);
    let (configs, newest) = watch::channel(config.unwrap().config);
    let (deposes, deposed) = mpsc::channel(1);
    let (updates, news) = mpsc::channel(room);
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
    Replica {
        roles: seen,
        shutdown,
        task: tokio::spawn(run),
        _ends: (configs, deposes, news),
    }
}

impl Replica {
    /// Its role, once it is like this.
    async fn is(&self, clock: &Clock, is: impl Fn(&Role) -> bool) -> Role {
        let end = Instant::now() + MOST;
        while !is(&self.now()) {
            assert!(Instant::now() < end, "{} in the end", self.now());
            clock.tick().await;
        }
        self.now()
    }

    async fn follows(&self, clock: &Clock, name: &str) -> u64 {
        let is = |role: &Role| matches!(role, Role::Following(leader) if leader.name == name);
        self.is(clock, is).await.index()
    }

    fn now(&self) -> Role {
        self.roles.borrow().clone()
    }
}

fn is_waiting(role: &Role) -> bool {
    *role == Role::Waiting
}

#[tokio::test]
async fn a_leader_that_ends_gives_the_lease_up_and_another_one_leads() {
    let clock = Clock::stop();
    let fake = Fake::start().await;
    // So long that nobody takes what was not given up.
    let a = start(&fake, "a", 2 * MOST);
    assert_eq!(a.is(&clock, Role::leads).await.index(), 1);
    let b = start(&fake, "b", DURATION);
    assert_eq!(b.follows(&clock, "a").await, 1);
    a.shutdown.cancel();
    a.task.await.unwrap();
    assert!(fake.spec()["holderIdentity"].is_null());
    assert_eq!(b.is(&clock, Role::leads).await.index(), 2);
}

#[tokio::test]
async fn who_cannot_reach_the_api_server_has_stopped_when_another_one_leads() {
    let clock = Clock::stop();
    let fake = Fake::start().await;
    let cut = fake.beside().await;
    let a = start(&cut, "a", DURATION);
    assert_eq!(a.is(&clock, Role::leads).await.index(), 1);
    let b = start(&fake, "b", DURATION);
    assert_eq!(b.follows(&clock, "a").await, 1);
    cut.does(Does::Hang);
    assert_eq!(b.is(&clock, Role::leads).await.index(), 2);
    assert_eq!(a.now(), Role::Waiting);
    cut.does(Does::Answer);
    assert_eq!(a.follows(&clock, "b").await, 2);
}

#[tokio::test]
async fn without_an_api_server_the_leader_stops_and_acts_alone_later_with_its_own_index() {
    let clock = Clock::stop();
    let fake = Fake::start().await;
    let a = start(&fake, "a", DURATION);
    assert_eq!(a.is(&clock, Role::leads).await.index(), 1);
    let b = start(&fake, "b", DURATION);
    assert_eq!(b.follows(&clock, "a").await, 1);
    fake.does(Does::Fail(500));
    a.is(&clock, is_waiting).await;
    assert_eq!(a.is(&clock, Role::leads).await.index(), 1);
    assert!(
        matches!(b.now(), Role::Following(_)),
        "it has heard of nobody else"
    );
    // Else it would only renew what nobody has taken.
    fake.world.lock().unwrap().lease = None;
    fake.does(Does::Answer);
    let newer = |role: &Role| role.index() > 1;
    a.is(&clock, newer).await;
    b.is(&clock, newer).await;
    let (a, b) = (a.now(), b.now());
    assert!(a.leads() != b.leads(), "{a} {b}");
}

#[tokio::test]
async fn who_hears_that_its_lease_is_gone_and_cannot_take_another_stops_when_it_would_have() {
    let clock = Clock::stop();
    let fake = Fake::start().await;
    let a = start(&fake, "a", DURATION);
    a.is(&clock, Role::leads).await;
    // It learns it as it renews, and opens another session, which can take nothing.
    fake.world.lock().unwrap().lease = None;
    fake.does(Does::Full);
    clock.run(DURATION).await;
    assert_eq!(a.now(), Role::Waiting);
}

#[tokio::test]
async fn who_has_never_led_leaves_a_leader_that_it_cannot_ask_for_the_time_to_be_heard_of() {
    let clock = Clock::stop();
    let fake = Fake::start().await;
    fake.does(Does::Fail(500));
    let began = Instant::now();
    let a = start(&fake, "a", DURATION);
    assert_eq!(a.is(&clock, Role::leads).await.index(), 0);
    assert!(began.elapsed() >= DURATION, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_group_that_has_lost_its_rights_has_its_old_leader() {
    let clock = Clock::stop();
    for does in [Does::Fail(403), Does::ReadOnly] {
        let fake = Fake::start().await;
        let a = start(&fake, "a", DURATION);
        assert_eq!(a.is(&clock, Role::leads).await.index(), 1);
        fake.does(does);
        a.is(&clock, is_waiting).await;
        let stopped = Instant::now();
        assert_eq!(a.is(&clock, Role::leads).await.index(), 1);
        assert!(stopped.elapsed() >= DURATION, "{does:?}");
        fake.does(Does::Answer);
        let b = start(&fake, "b", DURATION);
        clock.run(DURATION / 2).await;
        assert!(
            a.now().leads() != b.now().leads(),
            "{} {}",
            a.now(),
            b.now()
        );
    }
}

#[tokio::test]
async fn what_a_replica_is_does_not_wait_for_who_takes_news() {
    let clock = Clock::stop();
    let fake = Fake::start().await;
    let cut = fake.beside().await;
    let a = start(&fake, "a", DURATION);
    a.is(&clock, Role::leads).await;
    cut.does(Does::Fail(500));
    let b = start_with_room(&cut, "b", 2 * MOST, 1);
    // Its complaint has taken all the room.
    clock.run(Duration::from_secs(1)).await;
    cut.does(Does::Answer);
    assert_eq!(b.follows(&clock, "a").await, 1);
    // Nobody has taken that it no longer complains, and it goes on.
    a.shutdown.cancel();
    a.task.await.unwrap();
    assert_eq!(b.is(&clock, Role::leads).await.index(), 2);
    b.shutdown.cancel();
    b.task.await.unwrap();
    assert!(fake.spec()["holderIdentity"].is_null());
}
