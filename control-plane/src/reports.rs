// SPDX-License-Identifier: Apache-2.0
//! weir.v1.Reports: what proxies say they did.

pub mod ledger;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};
use weir_tables::v1::reports_server::{Reports, ReportsServer};
use weir_tables::v1::{Report, ReportAnswer};

use crate::newest::{self, Claim, Newest, checked};
use crate::state::Update;

/// The service.
#[derive(Clone, Debug)]
pub struct Service {
    updates: mpsc::Sender<Update>,
    /// By proxy and process.
    newest: Newest<(String, String)>,
    max_proxies: usize,
    shutdown: CancellationToken,
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
            newest: Newest::default(),
            max_proxies,
            shutdown,
        })
        .max_decoding_message_size(MAX_REPORT_BYTES)
    }

    async fn listen(self, process: String, mut reports: Streaming<Report>) -> Result<(), Status> {
        let over = CancellationToken::new();
        let mut claim: Option<(String, Claim<(String, String)>)> = None;
        loop {
            let report = tokio::select! {
                () = self.shutdown.cancelled() => return Err(Status::unavailable("shutting down")),
                () = over.cancelled() => return Err(Status::aborted("a newer stream of this proxy has come")),
                report = reports.message() => report?,
            };
            let Some(report) = report else { return Ok(()) };
            match &claim {
                None => {
                    let proxy = checked("report.proxy", &report.proxy)?.to_owned();
                    let peer = (proxy.clone(), process.clone());
                    let place = self.newest.claim(peer, over.clone(), self.max_proxies);
                    let full = || Status::resource_exhausted("reports.max_proxies is reached");
                    claim = Some((proxy, place.ok_or_else(full)?));
                }
                Some((proxy, _)) if *proxy != report.proxy => {
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

#[tonic::async_trait]
impl Reports for Service {
    type StreamStream = ReceiverStream<Result<ReportAnswer, Status>>;

    async fn stream(
        &self,
        request: Request<Streaming<Report>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let (answers, stream) = mpsc::channel(1);
        let service = self.clone();
        let process = newest::process(request.metadata());
        tokio::spawn(async move {
            // A caller that has gone is not read from any longer.
            let ended = tokio::select! {
                ended = service.listen(process, request.into_inner()) => ended,
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
