// SPDX-License-Identifier: Apache-2.0
//! News for the state's owner.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use weir_fleet::Update;
use weir_fleet::clients::ClientEvent;
use weir_fleet::node::Row;
use weir_fleet::update::Reported;
use weir_fleet::view::View;
use weir_fleet::view::glance::{Glance, Most};
use weir_fleet::view::receipt::ReceiptView;

use crate::config::{Config, Error};
use crate::share::Share;

/// News.
#[derive(Debug)]
pub enum News {
    /// A configuration that checks.
    Configured(Arc<Config>),
    /// The same configuration with other hosts, because discovery found them.
    Discovered(Arc<Config>),
    /// A configuration that does not check; the old one stays.
    Misconfigured(Error),
    /// News of the fleet.
    Fleet(Update),
    /// What a proxy counted.
    Reported {
        /// The report, and what its sender may say.
        reported: Reported,
        /// Of `reports.max_waiting_bytes`, until it is counted.
        share: Share,
    },
    /// A poll of a host's cache contents.
    Cached {
        /// What it brought: [`Update::Cached`].
        update: Update,
        /// Told where it was more than the host may hold, and nothing that the host said was kept: the next question
        /// starts from scratch.
        refused: oneshot::Sender<()>,
    },
    /// The governor of a host's node wants its row, and what follows; none where there is no such host.
    Watched {
        /// Name of the cluster.
        cluster: String,
        /// Address of the host.
        host: String,
        /// Where the rows go.
        rows: oneshot::Sender<Option<watch::Receiver<Row>>>,
    },
    /// A question whether news are taken in.
    Alive(oneshot::Sender<()>),
    /// A question why sidecars do not get tables from here, if they do not.
    Unready(oneshot::Sender<Option<String>>),
    /// A question for all that can be seen.
    View(oneshot::Sender<View>),
    /// A question for receipts that came after the one with this number, at most so many, the newest.
    Receipts(u64, usize, oneshot::Sender<Vec<ReceiptView>>),
    /// A question for the figures of it, of at most so many.
    Glance(Most, oneshot::Sender<Glance>),
}

impl News {
    /// What the state's owner answers to a question; none where it is gone.
    pub(crate) async fn ask<T>(
        updates: &mpsc::Sender<Self>,
        question: impl FnOnce(oneshot::Sender<T>) -> Self,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        updates.send(question(answer)).await.ok()?;
        answered.await.ok()
    }
}

impl From<Update> for News {
    fn from(update: Update) -> Self {
        Self::Fleet(update)
    }
}

impl From<ClientEvent> for News {
    fn from(event: ClientEvent) -> Self {
        Self::Fleet(Update::Client(event))
    }
}
