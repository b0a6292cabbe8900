// SPDX-License-Identifier: Apache-2.0
//! Renewed certificates of the listener.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tracing::{error, info};

use crate::config::{Config, Tls};
use crate::tls::acceptor;

/// Has each new connection see the newest certificate and authority of `configs`. What is open goes on.
pub(super) async fn renew(
    acceptors: watch::Sender<TlsAcceptor>,
    mut tls: Tls,
    mut configs: watch::Receiver<Arc<Config>>,
) {
    while configs.changed().await.is_ok() {
        let newest = configs.borrow_and_update().xds.tls.clone();
        // Without any a restart is needed, so there is one.
        let Some(newest) = newest.filter(|newest| *newest != tls) else {
            continue;
        };
        match acceptor(&newest) {
            Ok(acceptor) => {
                info!("the listener's certificates are new");
                acceptors.send_replace(acceptor);
                tls = newest;
            }
            // It was tried when the configuration was checked.
            Err(reason) => error!(reason, "the listener's certificates stay as they are"),
        }
    }
}
