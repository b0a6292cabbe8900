// SPDX-License-Identifier: Apache-2.0
//! The seam between the state's owner and the discovery server.
//!
//! The owner publishes an immutable [`Snapshot`] through a `tokio::sync::watch`; the server compares versions by
//! resource name and sends what differs. Its clients' answers come back as [`ClientEvent`]s.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use weir_fleet::clients::ClientEvent;
use weir_fleet::snapshot::Snapshot;

/// The two ends that a discovery server is given.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The newest snapshot.
    pub snapshots: watch::Receiver<Arc<Snapshot>>,
    /// Where events go.
    pub events: mpsc::Sender<ClientEvent>,
}
