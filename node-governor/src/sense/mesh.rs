// SPDX-License-Identifier: Apache-2.0
//! weir-control: what it says of the service's host, and what it is told that the service has.
//!
//! ```text
//!  loop ── report ──> Link ── NodeReport, on change and each second ──> weir.v1.Nodes
//!  loop <── row ───── Link <── HostRow, on change and each second ─────┘
//! ```

mod backoff;
mod link;
mod trouble;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tracing::{error, info, warn};
use weir_tables::v1::nodes_client::NodesClient;
use weir_tables::v1::{HostRow, NodeReport};

use crate::config;
use crate::sensed::{Nanos, Row};
use backoff::Backoff;
pub use link::Link;
use trouble::{Trouble, whole};

/// A stream whose first row takes longer, or whose next row does, is taken for lost: rows come each second.
const PATIENCE: Duration = Duration::from_secs(5);
/// The capacity is looked at this often, so that the loop has nothing to do but to store it.
const LOOK: Duration = Duration::from_millis(100);
/// An unchanged capacity is told again after this, so that it comes within each second.
const REPEAT: Duration = Duration::from_millis(800);
/// A weir-control that has vanished without a word is noticed in these two together, as there.
const PING_INTERVAL: Duration = Duration::from_secs(5);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// A row is three numbers.
const MAX_ROW_BYTES: usize = 1024;
/// A level of so many ranks admits all.
const ALL_RANKS: u32 = 4096;

/// Keeps a stream to weir-control for ever, beginning with the first capacity that is reported.
pub async fn connect(mesh: config::Mesh, link: Link) {
    let mut whom = match endpoint(&mesh.control, &mesh.trust) {
        Ok(endpoint) => endpoint,
        Err(error) => {
            error!(control = mesh.control, error, "weir-control is not asked");
            return;
        }
    };
    link.first_capacity(LOOK).await;
    let mut said = Said::default();
    let mut backoff = Backoff::default();
    loop {
        let channel = whom.connect();
        let answered = || {
            said.answered(&mesh);
            link.set_connected(true);
        };
        let trouble = talk(channel, &mesh, &link, answered).await;
        link.set_connected(false);
        let connected = said.ended(&mesh, &trouble);
        if connected {
            backoff = Backoff::default();
        }
        let pause = match trouble.mends_itself() {
            true => backoff.next(rand::random()),
            false => Backoff::longest(rand::random()),
        };
        tokio::time::sleep(pause).await;
        // Certificates may have been renewed since.
        if let Ok(renewed) = endpoint(&mesh.control, &mesh.trust.renewed()) {
            whom = renewed;
        }
    }
}

/// Whom to ask, and how. The error is the library's reason.
pub fn endpoint(control: &str, trust: &config::Trust) -> Result<Endpoint, String> {
    let endpoint = Endpoint::from_shared(control.to_owned())
        .map_err(|error| whole(&error))?
        .connect_timeout(PATIENCE)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true);
    if !control.starts_with("https://") {
        return Ok(endpoint);
    }
    let Some(authority) = &trust.authority else {
        return Err("mesh.authority: required with https, or no certificate is trusted".to_owned());
    };
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority));
    if let Some((certificate, key)) = &trust.identity {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    endpoint.tls_config(tls).map_err(|error| whole(&error))
}

/// One stream to its end, and why it ended. `answered` is called at its first row.
async fn talk(
    channel: impl Future<Output = Result<Channel, tonic::transport::Error>>,
    mesh: &config::Mesh,
    link: &Link,
    answered: impl FnOnce(),
) -> Trouble {
    let (reports, outbound) = mpsc::channel(1);
    let capacity = link.capacity();
    let open = async {
        let channel = channel.await.map_err(Trouble::unreachable)?;
        let client = NodesClient::new(channel).max_decoding_message_size(MAX_ROW_BYTES);
        // There is a place for one.
        let _ = reports.try_send(report(mesh, capacity));
        let mut rows = { client }.stream(ReceiverStream::new(outbound)).await?;
        let first = rows.get_mut().message().await?;
        Ok((rows.into_inner(), first))
    };
    let (rows, first) = match timeout(PATIENCE, open).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(trouble)) => return trouble,
        Err(_) => return Trouble::Silent(PATIENCE),
    };
    let Some(first) = first else {
        return Trouble::Closed;
    };
    answered();
    link.said(row(&first, super::now()));
    tokio::select! {
        trouble = listen(rows, link) => trouble,
        never = tell(capacity, &reports, mesh, link) => match never {},
    }
}

async fn listen(mut rows: Streaming<HostRow>, link: &Link) -> Trouble {
    loop {
        let message = match timeout(PATIENCE, rows.message()).await {
            Ok(Ok(Some(message))) => message,
            Ok(Ok(None)) => return Trouble::Closed,
            Ok(Err(status)) => return Trouble::from(status),
            Err(_) => return Trouble::Silent(PATIENCE),
        };
        link.said(row(&message, super::now()));
    }
}

/// Tells the capacity, the first time that it is another than was `told`.
async fn tell(
    mut told: u32,
    reports: &mpsc::Sender<NodeReport>,
    mesh: &config::Mesh,
    link: &Link,
) -> std::convert::Infallible {
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut at = Instant::now();
    loop {
        look.tick().await;
        let capacity = link.capacity();
        if capacity == told && at.elapsed() < REPEAT {
            continue;
        }
        if reports.send(report(mesh, capacity)).await.is_err() {
            // The stream has ended, and why is told where rows are read.
            return std::future::pending().await;
        }
        (told, at) = (capacity, Instant::now());
    }
}

fn report(mesh: &config::Mesh, capacity_millicores: u32) -> NodeReport {
    NodeReport {
        cluster: mesh.cluster.clone(),
        host: mesh.host.clone(),
        capacity_millicores,
    }
}

/// What it says; none where weir-control has no figures of the host.
pub fn row(message: &HostRow, now: Nanos) -> Option<Row> {
    let age = Duration::from_millis(message.age_ms?.into());
    Some(Row {
        at: Nanos(now.0.saturating_sub(age.as_nanos() as u64)),
        refuses: message.admission_level < ALL_RANKS,
        delay: message.queuing_delay_us.map(Duration::from_micros),
    })
}

/// What was logged last: each change is told once.
#[derive(Debug, Default)]
struct Said {
    connected: bool,
    trouble: Option<String>,
}

impl Said {
    fn answered(&mut self, mesh: &config::Mesh) {
        let (control, cluster, host) = (&mesh.control, &mesh.cluster, &mesh.host);
        info!(control, cluster, host, "weir-control answers");
        *self = Said {
            connected: true,
            trouble: None,
        };
    }

    /// Whether the stream that has ended had been answered.
    fn ended(&mut self, mesh: &config::Mesh, trouble: &Trouble) -> bool {
        let (control, cluster, host) = (&mesh.control, &mesh.cluster, &mesh.host);
        let reason = trouble.to_string();
        let connected = std::mem::take(&mut self.connected);
        if self.trouble.as_ref() == Some(&reason) {
            return connected;
        }
        match trouble.mends_itself() {
            false => warn!(control, cluster, host, reason, "weir-control refuses"),
            true if connected => info!(control, reason, "weir-control is lost"),
            true => warn!(control, reason, "weir-control does not answer"),
        }
        self.trouble = Some(reason);
        connected
    }
}

#[cfg(test)]
mod tests;
