// SPDX-License-Identifier: Apache-2.0
//! Access logs that callers' Envoys stream (Envoy's access log service), as a file that `capture` reads.
//!
//! ```text
//!  callers' Envoys ── StreamAccessLogs ──> Collector ── lines ──> file
//! ```

mod line;

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use envoy_types::pb::envoy::service::accesslog::v3::access_log_service_server::{
    AccessLogService, AccessLogServiceServer,
};
use envoy_types::pb::envoy::service::accesslog::v3::stream_access_logs_message::LogEntries;
use envoy_types::pb::envoy::service::accesslog::v3::{
    StreamAccessLogsMessage, StreamAccessLogsResponse,
};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, sleep};
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::capture::Line;
use crate::screen::counted;

/// Of requests: `capture` takes no more.
pub const MOST: u64 = crate::capture::MOST as u64;
/// Lines between streams and file. Envoys wait when it is full, and drop what they have no room for.
const WAITING: usize = 1024;
/// What is on the way to the file is there after this time.
const FLUSH: Duration = Duration::from_secs(1);
/// Envoys are asked to close their connections at the end. One that is frozen does not, and is not waited for longer.
const CLOSE: Duration = Duration::from_secs(1);

/// What was collected.
#[derive(Debug, Default, Serialize)]
pub struct Collected {
    /// Lines in the file.
    pub requests: u64,
    /// Node ids of the Envoys that they came from.
    pub callers: BTreeSet<String>,
    /// Requests that no host got to see.
    pub without_host: u64,
    /// Requests without a key.
    pub without_key: u64,
}

impl Display for Collected {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = counted(self.requests as usize, "request");
        let callers = counted(self.callers.len(), "caller");
        writeln!(to, "{requests} of {callers}")?;
        if self.without_host > 0 {
            writeln!(to, "{} went to no host", self.without_host)?;
        }
        if self.without_key > 0 {
            let number = self.without_key;
            writeln!(
                to,
                "{number} without a key: where there are keys, additional_request_headers_to_log wants x-weir-key"
            )?;
        }
        Ok(())
    }
}

/// Takes streams until `end`, or until there are `most` requests, and writes a line for each request.
///
/// # Errors
/// The file cannot be written, or the listener fails.
pub async fn collect(
    listener: TcpListener,
    file: &mut impl Write,
    most: u64,
    end: impl Future<Output = ()>,
) -> Result<Collected> {
    let (lines, received) = mpsc::channel(WAITING);
    let over = CancellationToken::new();
    let streams = over.clone();
    let collector = AccessLogServiceServer::new(Collector { lines, streams });
    let incoming = TcpIncoming::from(listener);
    let stop = over.clone().cancelled_owned();
    let served = Server::builder().serve_with_incoming_shutdown(collector, incoming, stop);
    let served = async {
        tokio::select! {
            served = served => served,
            () = async { over.cancelled().await; sleep(CLOSE).await } => Ok(()),
        }
    };
    let ended = async {
        tokio::select! {
            () = end => over.cancel(),
            () = over.cancelled() => {}
        }
    };
    let written = async {
        let written = write(received, file, most, &over).await;
        over.cancel();
        written
    };
    let (served, written, ()) = tokio::join!(served, written, ended);
    served?;
    written.context("writing the log")
}

async fn write(
    mut lines: mpsc::Receiver<Line>,
    file: &mut impl Write,
    most: u64,
    over: &CancellationToken,
) -> io::Result<Collected> {
    let mut collected = Collected::default();
    let mut flush = tokio::time::interval(FLUSH);
    flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            // What waits is written still.
            () = over.cancelled(), if !lines.is_closed() => {
                lines.close();
                continue;
            }
            _ = flush.tick() => {
                file.flush()?;
                continue;
            }
        };
        let Some(line) = line.filter(|_| collected.requests < most) else {
            break;
        };
        serde_json::to_writer(&mut *file, &line)?;
        file.write_all(b"\n")?;
        collected.add(line);
        if collected.requests == most {
            over.cancel();
        }
    }
    file.flush()?;
    Ok(collected)
}

impl Collected {
    fn add(&mut self, line: Line) {
        self.requests += 1;
        self.without_host += u64::from(line.upstream_host.is_none());
        self.without_key += u64::from(line.key.is_none());
        self.callers.extend(line.caller);
    }
}

struct Collector {
    lines: mpsc::Sender<Line>,
    /// Streams last as long as their Envoys; this ends them.
    streams: CancellationToken,
}

#[tonic::async_trait]
impl AccessLogService for Collector {
    async fn stream_access_logs(
        &self,
        stream: Request<Streaming<StreamAccessLogsMessage>>,
    ) -> Result<Response<StreamAccessLogsResponse>, Status> {
        let take = self.take(stream.into_inner());
        tokio::select! {
            taken = take => taken?,
            () = self.streams.cancelled() => {}
        }
        Ok(Response::new(StreamAccessLogsResponse {}))
    }
}

impl Collector {
    async fn take(&self, mut stream: Streaming<StreamAccessLogsMessage>) -> Result<(), Status> {
        let mut caller = String::new();
        while let Some(message) = stream.message().await? {
            // The first message of a stream alone says whose it is.
            if let Some(node) = message.identifier.and_then(|identifier| identifier.node) {
                caller = node.id;
            }
            let Some(LogEntries::HttpLogs(entries)) = message.log_entries else {
                continue;
            };
            let entries = entries.log_entry.into_iter();
            for line in entries.filter_map(|entry| line::of(entry, &caller)) {
                let sent = self.lines.send(line).await;
                sent.map_err(|_| Status::resource_exhausted("no more lines are wanted"))?;
            }
        }
        Ok(())
    }
}
