// SPDX-License-Identifier: Apache-2.0
//! Which hosts each cluster has.
//!
//! ```text
//!  file ──── as written ──┐
//!                         ├─ Membership ── effective Config (watch) ──> supervise
//!  registry ─ as found ───┘                └──────── Update ──────────> state
//! ```
//!
//! One owner, so that a change of either kind sees the other's newest. What was found last stays while
//! discovery fails, names nobody, or has not answered a new question yet.

mod known;
mod union;

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tracing::Instrument;
use weir_fleet::Update;
use weir_fleet::poll::PollError;
use weir_fleet::role::Role;

use super::consul;
use super::discovery::{Answered, Said};
use super::dns;
use super::kubernetes;
use super::running::{LOOK_EVERY, Running};
use crate::config::{Config, Registry};
use crate::news::News;

pub use known::Membership;

/// News of discovery that may wait.
const NEWS_WAITING: usize = 64;

/// Tasks that ask for one cluster each.
type Asking = Running<String, Registry>;

/// Owns the membership until nobody writes configurations or wants to know. Only who leads asks; what it had
/// found is forgotten when it does not lead any more.
pub async fn run(
    mut written: watch::Receiver<Arc<Config>>,
    mut roles: watch::Receiver<Role>,
    configs: watch::Sender<Arc<Config>>,
    updates: mpsc::Sender<News>,
) {
    let (sender, mut news) = mpsc::channel(NEWS_WAITING);
    let mut membership = Membership::new(written.borrow().clone());
    let mut asking = Running::new();
    let mut look = tokio::time::interval(LOOK_EVERY);
    let mut leads = roles.borrow_and_update().leads();
    ask(leads, &membership, &mut asking, &sender);
    loop {
        let told: Vec<News> = tokio::select! {
            changed = written.changed() => {
                if changed.is_err() {
                    return;
                }
                membership.configure(written.borrow_and_update().clone());
                ask(leads, &membership, &mut asking, &sender);
                let configured = News::Configured(publish(&membership, &configs));
                std::iter::once(configured).chain(waiting(&membership)).collect()
            }
            Ok(()) = roles.changed() => {
                leads = roles.borrow_and_update().leads();
                ask(leads, &membership, &mut asking, &sender);
                if leads {
                    continue;
                }
                membership = Membership::new(written.borrow().clone());
                vec![News::Discovered(publish(&membership, &configs))]
            }
            _ = look.tick() => {
                if asking.has_ended() {
                    ask(leads, &membership, &mut asking, &sender);
                }
                continue;
            }
            Some(news) = news.recv() => {
                if !leads || !membership.is_asked(&news.cluster, &news.registry) {
                    continue;
                }
                let (source, cluster) = (news.source(), news.cluster);
                let (changed, result) = take(&mut membership, &cluster, news.said);
                let found = changed.then(|| News::Discovered(publish(&membership, &configs)));
                let asked = Update::Asked { cluster, source, result }.into();
                found.into_iter().chain([asked]).collect()
            }
        };
        for news in told {
            if updates.send(news).await.is_err() {
                return;
            }
        }
    }
}

fn take(
    membership: &mut Membership,
    cluster: &str,
    said: Said,
) -> (bool, Result<Vec<String>, PollError>) {
    match said {
        Said::Hosts(Ok(found)) => {
            let (changed, complaints) = membership.find(cluster, found);
            (changed, Ok(complaints))
        }
        Said::TrustDomain(Ok(now)) => (false, Ok(membership.trust(cluster, now))),
        Said::Hosts(Err(error)) | Said::TrustDomain(Err(error)) => (false, Err(error)),
    }
}

/// Says of whom the hosts are those of the question before.
fn waiting(membership: &Membership) -> impl Iterator<Item = News> {
    membership.waiting().map(|(cluster, complaint)| {
        let cluster = cluster.as_str().into();
        Update::Waiting { cluster, complaint }.into()
    })
}

fn publish(membership: &Membership, configs: &watch::Sender<Arc<Config>>) -> Arc<Config> {
    let config = membership.effective();
    configs.send_replace(config.clone());
    config
}

/// Keeps one task a cluster that is to be found.
fn ask(leads: bool, membership: &Membership, asking: &mut Asking, news: &mpsc::Sender<Answered>) {
    let wanted = membership.registries().filter(|_| leads);
    let wanted = wanted.map(|(name, registry)| (name.clone(), registry.clone()));
    asking.keep(wanted.collect(), Registry::is, |name, registry| {
        let source = registry.source().as_str();
        let span = tracing::info_span!("discovery", source, cluster = %name);
        let (cluster, news) = (name.as_str().into(), news.clone());
        match registry.clone() {
            Registry::Consul(asked) => {
                tokio::spawn(consul::run(cluster, asked, news).instrument(span))
            }
            Registry::Dns(asked) => tokio::spawn(dns::run(cluster, asked, news).instrument(span)),
            Registry::Kubernetes(asked) => {
                tokio::spawn(kubernetes::run(cluster, asked, news).instrument(span))
            }
        }
    });
}
