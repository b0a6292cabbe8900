// SPDX-License-Identifier: Apache-2.0
//! weir.v1.Reports: what proxies say they did.

pub mod ledger;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};
use weir_tables::v1::reports_server::{Reports, ReportsServer};
use weir_tables::v1::{Report, ReportAnswer};

use crate::state::Update;

/// Names of nodes are names, not documents.
const MAX_PROXY_BYTES: usize = 1024;

/// The service.
#[derive(Clone, Debug)]
pub struct Service {
    updates: mpsc::Sender<Update>,
    streams: Arc<Mutex<Streams>>,
    max_proxies: usize,
    shutdown: CancellationToken,
}

/// The one stream of each proxy.
#[derive(Debug, Default)]
struct Streams {
    opened: u64,
    newest: BTreeMap<String, (u64, CancellationToken)>,
}

/// Counters by host and rank of every VM of a proxy: 16 worker threads, 200 hosts and 256 ranks in use take
/// 7 MB. A larger report ends its stream.
const MAX_REPORT_BYTES: usize = 16 << 20;

impl Service {
    /// A server that tells `updates` until `shutdown`.
    pub fn server(
        updates: mpsc::Sender<Update>,
        max_proxies: usize,
        shutdown: CancellationToken,
    ) -> ReportsServer<Self> {
        ReportsServer::new(Self {
            updates,
            streams: Arc::default(),
            max_proxies,
            shutdown,
        })
        .max_decoding_message_size(MAX_REPORT_BYTES)
    }

    /// Makes this the proxy's stream; an older one ends.
    fn supersede(&self, proxy: &str) -> Result<Turn, Status> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if !streams.newest.contains_key(proxy) && streams.newest.len() >= self.max_proxies {
            return Err(Status::resource_exhausted("reports.max_proxies is reached"));
        }
        streams.opened += 1;
        let (number, over) = (streams.opened, CancellationToken::new());
        if let Some((_, older)) = streams
            .newest
            .insert(proxy.to_owned(), (number, over.clone()))
        {
            older.cancel();
        }
        Ok(Turn {
            service: self.clone(),
            proxy: proxy.to_owned(),
            number,
            over,
        })
    }

    async fn listen(self, mut reports: Streaming<Report>) -> Result<(), Status> {
        let mut turn: Option<Turn> = None;
        loop {
            let over = turn
                .as_ref()
                .map(|turn| turn.over.clone())
                .unwrap_or_default();
            let report = tokio::select! {
                () = self.shutdown.cancelled() => return Err(Status::unavailable("shutting down")),
                () = over.cancelled() => return Err(Status::aborted("a newer stream of this proxy has come")),
                report = reports.message() => report?,
            };
            let Some(report) = report else { return Ok(()) };
            match &turn {
                None => turn = Some(self.supersede(checked(&report.proxy)?)?),
                Some(turn) if turn.proxy != report.proxy => {
                    return Err(Status::invalid_argument(
                        "report.proxy: changed within the stream",
                    ));
                }
                Some(_) => {}
            }
            if self.updates.send(Update::Reported(report)).await.is_err() {
                return Err(Status::unavailable("shutting down"));
            }
        }
    }
}

fn checked(proxy: &str) -> Result<&str, Status> {
    match proxy.len() {
        0 => Err(Status::invalid_argument("report.proxy: empty")),
        1..=MAX_PROXY_BYTES => Ok(proxy),
        _ => Err(Status::invalid_argument(format!(
            "report.proxy: over {MAX_PROXY_BYTES} bytes"
        ))),
    }
}

/// A proxy's stream; gives its place up when it ends.
struct Turn {
    service: Service,
    proxy: String,
    number: u64,
    over: CancellationToken,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut streams = self
            .service
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if streams
            .newest
            .get(&self.proxy)
            .is_some_and(|(number, _)| *number == self.number)
        {
            streams.newest.remove(&self.proxy);
        }
    }
}

#[tonic::async_trait]
impl Reports for Service {
    type StreamStream = ReceiverStream<Result<ReportAnswer, Status>>;

    async fn stream(
        &self,
        request: Request<Streaming<Report>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let (answers, stream) = mpsc::channel(1);
        let service = self.clone();
        tokio::spawn(async move {
            // A caller that has gone is not read from any longer.
            let ended = tokio::select! {
                ended = service.listen(request.into_inner()) => ended,
                () = answers.closed() => return,
            };
            if let Err(status) = ended {
                // Nobody listens where the caller has gone.
                let _ = answers.send(Err(status)).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}
