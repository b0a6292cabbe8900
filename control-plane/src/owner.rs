// SPDX-License-Identifier: Apache-2.0
//! The owner of the state: the only task that has it. The others send [`News`] or hold a snapshot.
//!
//! ```text
//!  News ──> Owner ── Update ──> weir_fleet::State ── Event ──> metrics, log, rows of governors
//!             └── each `publish` ── Snapshot (watch) ──> discovery server
//! ```

mod log;

use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use weir_fleet::budget::ByCluster;
use weir_fleet::clients::ClientEvent;
use weir_fleet::ledger::Names;
use weir_fleet::role::Role;
use weir_fleet::snapshot::Snapshot;
use weir_fleet::view::View;
use weir_fleet::view::receipt::ReceiptView;
use weir_fleet::{Event, State, Update};

use crate::config::Config;
use crate::metrics::Metrics;
use crate::news::News;
use crate::rows::Rows;
use log::Log;

/// Few enough that the next table does not wait for them.
const EVENTS_AT_ONCE: usize = 256;

/// The state, and whoever is told of its steps.
#[derive(Debug)]
pub struct Owner {
    state: State,
    metrics: Metrics,
    log: Log,
    rows: Rows,
    /// Bytes of the names that discovery streams ask for.
    names: Gauge,
    /// Clusters whose cache contents are kept, for those who ask for them.
    contents: watch::Sender<ByCluster>,
    /// Between two tables.
    publish: Duration,
}

impl Owner {
    /// Nothing is known yet but the configuration. `epoch` tells this process' versions from others'.
    pub fn new(config: &Config, epoch: u64, metrics: Metrics, origin: Instant) -> Self {
        let state = State::new(Arc::new(config.fleet()), epoch, origin);
        metrics.certificates(&config.certificates);
        Self {
            state,
            metrics,
            log: Log::default(),
            rows: Rows::default(),
            names: Gauge::default(),
            contents: watch::Sender::default(),
            publish: config.publish,
        }
    }

    /// Counts what discovery streams ask for, as `names` shows it, and has so much memory where the configuration
    /// has no limit.
    #[must_use]
    pub fn within(mut self, allowance: Option<usize>, names: Gauge) -> Self {
        self.state = self.state.within(allowance);
        self.names = names;
        self
    }

    /// One of several, which says nothing before it knows who leads.
    #[must_use]
    pub fn of_several(mut self, handed_over_after: Duration) -> Self {
        self.state = self.state.of_several(handed_over_after);
        self
    }

    /// One that may have been there before: its levels go on from those that sidecars say are in force.
    #[must_use]
    pub fn resuming(mut self) -> Self {
        self.state = self.state.resuming();
        self
    }

    /// Clusters whose cache contents are kept.
    pub fn contents(&self) -> watch::Receiver<ByCluster> {
        self.contents.subscribe()
    }

    /// All that can be seen.
    pub fn view(&self, now: Instant) -> View {
        self.state.view(self.state.clock(now))
    }

    /// Takes in news. Whoever asked something may have gone.
    pub fn fold(&mut self, news: impl Into<News>, now: Instant) {
        match news.into() {
            News::Configured(config) => {
                tracing::info!(clusters = config.clusters.len(), "configuration applied");
                for want in config.wants() {
                    tracing::warn!("{want}");
                }
                self.metrics.config_loads("ok");
                self.configure(&config, Update::Configured, now);
            }
            News::Discovered(config) => self.configure(&config, Update::Discovered, now),
            News::Misconfigured(error) => {
                tracing::warn!(%error, "configuration refused; the old one stays");
                self.metrics.config_loads("refused");
                self.update(Update::Misconfigured(error.to_string()), now);
            }
            News::Fleet(update) => self.update(update, now),
            News::Reported { reported, share } => {
                self.update(Update::Reported(reported), now);
                drop(share);
            }
            News::Cached { update, refused } => {
                let events = self.state_events(update, now);
                if events.contains(&Event::ContentsRefused) {
                    let _ = refused.send(());
                }
                self.tell(events, now);
            }
            News::Watched {
                cluster,
                host,
                rows,
            } => {
                let row = self.state.row(&cluster, &host, now);
                let row = row.map(|row| self.rows.watch(&cluster, &host, row));
                let _ = rows.send(row);
            }
            News::Alive(answer) => {
                let _ = answer.send(());
            }
            News::Unready(answer) => {
                let _ = answer.send(self.state.unready());
            }
            News::View(answer) => {
                let _ = answer.send(self.view(now));
            }
            News::Receipts(after, most, answer) => {
                let now = self.state.clock(now);
                let newest = self.state.receipts().after(after).rev().take(most);
                let mut newest: Vec<_> = newest.map(|it| ReceiptView::of(it, now)).collect();
                newest.reverse();
                let _ = answer.send(newest);
            }
            News::Glance(most, answer) => {
                let _ = answer.send(self.state.glance(self.state.clock(now), most));
            }
        }
    }

    fn configure(
        &mut self,
        config: &Config,
        update: impl FnOnce(Arc<weir_fleet::Settings>) -> Update,
        now: Instant,
    ) {
        self.publish = config.publish;
        self.metrics.certificates(&config.certificates);
        self.update(update(Arc::new(config.fleet())), now);
    }

    fn update(&mut self, update: Update, now: Instant) {
        let events = self.state_events(update, now);
        self.tell(events, now);
    }

    fn state_events(&mut self, update: Update, now: Instant) -> Vec<Event> {
        self.count_names();
        self.state.fold(update, now)
    }

    fn count_names(&mut self) {
        let names = usize::try_from(self.names.get()).unwrap_or(0);
        self.state.count_names(names);
    }

    /// Takes what this replica is now.
    pub fn take_role(&mut self, role: Role, now: Instant) {
        let events = self.state.take_role(role, rand::random(), now);
        self.tell(events, now);
    }

    /// Does what only time brings about.
    pub fn advance(&mut self, now: Instant) {
        self.count_names();
        let events = self.state.advance(now);
        self.tell(events, now);
        let budget = self.state.budget();
        self.metrics.memory(budget.limit(), budget.counted());
    }

    /// Builds what is due; none where nothing is.
    pub fn publish(&mut self, now: Instant) -> Option<Arc<Snapshot>> {
        let (snapshot, events) = self.state.publish(now, unix_ms());
        self.tell(events, now);
        if snapshot.is_some() && self.state.replica().role.leads() {
            self.metrics
                .proxies(self.state.ledger(), self.state.clock(now));
        }
        snapshot
    }

    /// Tells metrics, the log, and governors of a step.
    fn tell(&mut self, events: Vec<Event>, now: Instant) {
        for event in events {
            self.log.event(&event);
            self.metrics
                .event(&event, &self.state, self.state.clock(now));
            match &event {
                Event::TableBuilt { cluster, .. } => {
                    let row = |host: &str| self.state.row(cluster, host, now);
                    self.rows.tell(cluster, row);
                }
                Event::Configured { .. } => {
                    let clusters = self.state.clusters();
                    self.rows
                        .retain(|cluster, host| clusters.has_host(cluster, host));
                    self.tell_contents();
                }
                Event::Begun => {
                    self.rows.clear();
                    self.tell_contents();
                }
                Event::ContentsChanged { .. } => self.tell_contents(),
                _ => {}
            }
        }
    }

    fn tell_contents(&self) {
        let contents = self.state.budget().by_cluster();
        self.contents.send_if_modified(|told| {
            let is_news = *told != contents;
            *told = contents;
            is_news
        });
    }
}

/// The time of day as sidecars and providers tell it.
fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Owns the state until `shutdown` or until nobody sends news.
pub async fn run(
    mut owner: Owner,
    mut updates: mpsc::Receiver<News>,
    mut events: mpsc::Receiver<ClientEvent>,
    snapshots: watch::Sender<Arc<Snapshot>>,
    mut roles: watch::Receiver<Role>,
    shutdown: CancellationToken,
) {
    let now = || tokio::time::Instant::now().into_std();
    owner.take_role(roles.borrow_and_update().clone(), now());
    let stopped = shutdown.cancelled();
    let tick = tokio::time::sleep(Duration::ZERO);
    tokio::pin!(stopped, tick);
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            // In this order: no flood of news keeps tables from being built.
            biased;
            () = &mut stopped => return,
            Ok(()) = roles.changed() => {
                let role = roles.borrow_and_update().clone();
                owner.take_role(role, now());
            }
            () = &mut tick => {
                let at = tokio::time::Instant::now();
                owner.advance(at.into_std());
                if let Some(snapshot) = owner.publish(at.into_std()) {
                    snapshots.send_replace(snapshot);
                }
                tick.as_mut().reset(at + owner.publish);
            }
            // Every sidecar answers every table, so they come by the thousand.
            1.. = events.recv_many(&mut batch, EVENTS_AT_ONCE) => {
                let now = now();
                for event in batch.drain(..) {
                    owner.fold(event, now);
                }
            }
            update = updates.recv() => match update {
                Some(update) => owner.fold(update, now()),
                None => return,
            },
        }
    }
}

#[cfg(test)]
mod tests;
