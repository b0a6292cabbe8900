// SPDX-License-Identifier: Apache-2.0
//! Who of several weir-control builds the tables.
//!
//! ```text
//!  Consul, Kubernetes ── lock ── Event ──> machine (pure) ──> Role (watch) ──> state, sources, follow, forward
//!     ^                                       └─ Wish ─┐
//!     └────────────────────────────────────────────────┘
//! ```
//! The lock is a key of Consul's that a session holds (developer.hashicorp.com/consul/tutorials/developer-configuration/application-leader-elections),
//! or a Lease of Kubernetes' ([`lock::lease`]).
//! Each time that it is taken its index grows, and each table carries it (`weir_tables::Meta`): of two who
//! take themselves for the leader the older one's tables are refused, so that the lock needs no delay.
//! A leader goes on until it learns of another one: to be without tables is worse than two who build them. With a Lease,
//! which no server ends, it stops before others may take it over.

pub mod lock;
mod machine;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock::{Lock, Reading};
use machine::{Event, Machine, Wish};
use rand::RngExt;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use weir_fleet::Update;
use weir_fleet::poll::{Fault, PollError};
use weir_fleet::role::Role;

use crate::config::{Config, Replicas};
use crate::news::News;

/// Without an answer of the lock's server, a replica that has no leader does not wait longer than this: nobody may be there
/// to lead.
const PATIENCE: Duration = Duration::from_secs(3);
/// At the end the others are told, unless that takes longer.
const FAREWELL: Duration = Duration::from_secs(1);
/// Between two questions for the lock, however fast there is news.
const BETWEEN: Duration = Duration::from_millis(20);
/// A leader is not put down when it is younger. Each time that this replica puts one down the age doubles, up to
/// [`DOUBLINGS`] times: two behind a firewall that refuses connections put each other down by turns, but not for
/// long. A leader's session ends by itself anyway, within twice its time.
const YOUNG: Duration = Duration::from_secs(5);
/// To 320 s.
const DOUBLINGS: u32 = 6;

/// The leader's session, as a follower names the leader that refuses its connections.
pub type Depose = Arc<str>;

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Takes part in the choice of the leader until `shutdown`, and says then that it is over.
///
/// `roles` has what this replica is; `deposed` names leaders that are gone.
pub async fn run(
    replicas: Arc<Replicas>,
    configs: watch::Receiver<Arc<Config>>,
    address: String,
    roles: watch::Sender<Role>,
    deposed: mpsc::Receiver<Depose>,
    updates: mpsc::Sender<News>,
    shutdown: CancellationToken,
) {
    // It was built once when the configuration was checked.
    let lock = match Lock::new(&replicas, &address) {
        Ok(lock) => Arc::new(lock),
        Err(error) => return tracing::error!(error, "no client for the lock"),
    };
    let now = Instant::now();
    let candidate = Candidate {
        machine: Machine::new(address.clone()),
        lock: lock.clone(),
        address,
        replicas,
        roles,
        updates,
        read: Box::pin(read(lock, 0, Duration::ZERO)),
        doing: None,
        renew_at: now,
        retry_at: now,
        began: now,
        since: now,
        answered_at: now,
        lapsed_at: None,
        put_down: 0,
        complains: None,
        is_told: true,
    };
    candidate.run(configs, deposed, shutdown).await;
}

/// What was tried, and what came of it.
type Done = (Wish, Result<Event, PollError>);

struct Candidate {
    machine: Machine,
    lock: Arc<Lock>,
    /// Where this replica is reached.
    address: String,
    /// With what the lock was made.
    replicas: Arc<Replicas>,
    roles: watch::Sender<Role>,
    updates: mpsc::Sender<News>,
    read: Pending<Result<Reading, PollError>>,
    doing: Option<Pending<Done>>,
    renew_at: Instant,
    retry_at: Instant,
    began: Instant,
    /// When the role was taken.
    since: Instant,
    /// When the lock's server last said something, or this replica began to wait for it.
    answered_at: Instant,
    /// When it last stopped leading because others may.
    lapsed_at: Option<Instant>,
    /// How many leaders it has put down.
    put_down: u32,
    /// What is complained of.
    complains: Option<String>,
    /// Whether who takes news has been told that.
    is_told: bool,
}

impl Candidate {
    async fn run(
        mut self,
        mut configs: watch::Receiver<Arc<Config>>,
        mut deposed: mpsc::Receiver<Depose>,
        shutdown: CancellationToken,
    ) {
        loop {
            self.start();
            let due = match self.doing {
                Some(_) => None,
                None => self.renewal_due(),
            };
            let alone = (self.machine.waits_in_vain()).then(|| self.alone_at());
            let holds = self.machine.holds();
            let lapses = holds.then(|| self.lock.lapses_at()).flatten();
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                // Before all news: who was frozen knows first that it has been away.
                () = until(lapses) => self.lapse(),
                done = pending(&mut self.doing) => self.done(done),
                reading = &mut self.read => self.reads(reading),
                Ok(()) = configs.changed() => {
                    let config = configs.borrow_and_update().clone();
                    self.renew(config.replicas.clone());
                }
                session = deposed.recv() => if let Some(session) = session {
                    self.depose(&session).await;
                },
                () = until(alone) => self.take(Event::Silence),
                () = until(due) => self.begin(Wish::Renew),
                // The lock does not wait for who takes news. Nobody does at the end.
                Ok(room) = self.updates.clone().reserve_owned(), if !self.is_told => self.tell(room),
                () = sleep_until(self.retry_at), if self.is_resting() => {}
            }
        }
        drop((self.read, self.doing));
        if let Some(session) = self.machine.session() {
            let said = timeout(FAREWELL, self.lock.destroy(session)).await;
            info!(told = matches!(said, Ok(Ok(()))), "gives up what it leads");
        }
    }

    /// Asks with newer certificates or a newer token from now on.
    fn renew(&mut self, newest: Option<Arc<Replicas>>) {
        let Some(newest) = newest.filter(|newest| newest.lock != self.replicas.lock) else {
            return;
        };
        match self.lock.renewed(&newest, &self.address) {
            Ok(lock) => {
                info!("the lock is asked for with another token or other certificates");
                self.lock = Arc::new(lock);
                self.replicas = newest;
                self.read = Box::pin(read(self.lock.clone(), 0, Duration::ZERO));
            }
            // It was tried when the configuration was checked.
            Err(error) => tracing::error!(error, "the client for the lock stays as it is"),
        }
    }

    fn renewal_due(&self) -> Option<Instant> {
        self.lock.renewed_every()?;
        self.machine.session().map(|_| self.renew_at)
    }

    /// When it acts alone if there is no answer until then: one that has stopped leading gives others the time to take
    /// over, and one that has begun does not take the place of a leader that it cannot ask for at once.
    fn alone_at(&self) -> Instant {
        let silent = self.answered_at + PATIENCE;
        let patient = self.lapsed_at.unwrap_or(self.began) + self.lock.patience();
        silent.max(patient)
    }

    fn lapse(&mut self) {
        self.lapsed_at = Some(Instant::now());
        warn!("the lock was not renewed in time: others may take it");
        self.read = Box::pin(read(self.lock.clone(), 0, Duration::ZERO));
        self.take(Event::Lapsed);
    }

    fn is_resting(&self) -> bool {
        self.doing.is_none() && Instant::now() < self.retry_at && self.machine.wish().is_some()
    }

    /// Begins what the machine wants.
    fn start(&mut self) {
        if self.doing.is_none()
            && Instant::now() >= self.retry_at
            && let Some(wish) = self.machine.wish()
        {
            self.begin(wish);
        }
    }

    fn begin(&mut self, wish: Wish) {
        let lock = self.lock.clone();
        let session = self.machine.session().map(str::to_owned);
        self.doing = Some(Box::pin(async move {
            let session = session.as_deref().unwrap_or_default();
            let event = match &wish {
                Wish::Open => lock.open().await.map(Event::Opened),
                Wish::Acquire => lock.acquire(session).await.map(Event::Answered),
                Wish::Bury(session) => lock.destroy(session).await.map(|()| Event::Buried),
                Wish::Renew => lock.renew(session).await.map(|alive| match alive {
                    true => Event::Renewed,
                    false => Event::Expired,
                }),
            };
            (wish, event)
        }));
    }

    fn done(&mut self, (wish, result): Done) {
        self.doing = None;
        let now = Instant::now();
        let event = match result {
            Ok(event) => event,
            Err(error) => {
                let pause = rand::rng().random_range(0.5..1.5);
                self.retry_at = now + self.lock.retry().mul_f64(pause);
                self.renew_at = self.retry_at;
                let denied = error.fault == Fault::Denied;
                tracing::debug!(?wish, %error, "the lock's server does not do it");
                let what = error.to_string();
                let failed = Event::Failed {
                    reading: false,
                    denied,
                    what,
                };
                return self.take(failed);
            }
        };
        if let Event::Opened(_) | Event::Renewed = event {
            let early = rand::rng().random_range(0.8..1.0);
            let every = self.lock.renewed_every().unwrap_or_default();
            self.renew_at = now + every.mul_f64(early);
        }
        if let Event::Answered(false) = event {
            self.retry_at = now + self.lock.retry();
        }
        if event.outdates_reading() {
            self.read = Box::pin(read(self.lock.clone(), 0, Duration::ZERO));
        }
        self.take(event);
    }

    fn reads(&mut self, reading: Result<Reading, PollError>) {
        let lock = self.lock.clone();
        match reading {
            Ok(Reading { index, key }) => {
                self.read = Box::pin(read(lock, index, BETWEEN));
                self.take(Event::Read(key));
            }
            Err(error) => {
                let pause = rand::rng().random_range(0.5..1.5);
                let pause = lock.retry().mul_f64(pause);
                self.read = Box::pin(read(lock, 0, pause));
                let denied = error.fault == Fault::Denied;
                let what = error.to_string();
                let failed = Event::Failed {
                    reading: true,
                    denied,
                    what,
                };
                self.take(failed);
            }
        }
    }

    /// The leader's process has gone: nobody listens where it was.
    async fn depose(&mut self, session: &str) {
        let young = YOUNG * 2_u32.pow(self.put_down.min(DOUBLINGS));
        if self.machine.follows(session) && self.since.elapsed() >= young {
            self.put_down += 1;
            warn!(
                session,
                "the leader refuses connections; its lock is released"
            );
            let ended = timeout(FAREWELL, self.lock.destroy(session)).await;
            if let Ok(Err(error)) = ended {
                warn!(%error, "the leader's lock was not released");
            }
        }
    }

    fn take(&mut self, event: Event) {
        if self.machine.is_answer(&event) {
            self.answered_at = Instant::now();
        }
        let role = self.machine.on(event);
        if *self.roles.borrow() != role {
            info!(%role, "role");
            self.since = Instant::now();
            self.roles.send_replace(role);
        }
        let complaint = self.machine.complaint();
        if self.complains.as_deref() != complaint {
            match complaint {
                Some(complaint) => warn!(complaint, "the lock of the leader"),
                None => info!("the lock of the leader is as it should be"),
            }
            self.complains = complaint.map(str::to_owned);
            self.is_told = false;
        }
    }

    fn tell(&mut self, room: mpsc::OwnedPermit<News>) {
        room.send(Update::Complained(self.complains.clone()).into());
        self.is_told = true;
    }
}

async fn read(lock: Arc<Lock>, index: u64, pause: Duration) -> Result<Reading, PollError> {
    sleep(pause).await;
    lock.read(index).await
}

async fn pending(doing: &mut Option<Pending<Done>>) -> Done {
    match doing {
        Some(doing) => doing.await,
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
