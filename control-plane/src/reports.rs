// SPDX-License-Identifier: Apache-2.0
//! weir.v1.Reports: what proxies say they did.

mod encoded;
pub mod ledger;

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use weir_tables::v1::reports_server::SERVICE_NAME;
use weir_tables::v1::{Report, ReportAnswer};

use crate::gate::{Caller, Gate};
use crate::newest::{self, Claim, Newest, checked};
use crate::state::Update;
use encoded::Encoded;

const STREAM: &str = "/weir.v1.Reports/Stream";

/// The service. What `weir_tables` generates for it would decode each report as it comes, and a decoded one takes
/// several times the memory: those that wait for the state's owner wait encoded, one a stream. Clones are the same.
#[derive(Clone, Debug)]
pub struct Service {
    updates: mpsc::Sender<Update>,
    /// By proxy and process.
    proxies: Newest<(String, String)>,
    max_proxies: usize,
    gate: Gate,
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
    ) -> Self {
        Self {
            updates,
            proxies: Newest::default(),
            max_proxies,
            gate: Gate::default(),
            shutdown,
        }
    }

    /// The same where callers need leave.
    pub fn guarded(self, gate: Gate) -> Self {
        Self { gate, ..self }
    }

    async fn listen(
        self,
        caller: Caller,
        process: String,
        mut reports: Streaming<Bytes>,
    ) -> Result<(), Status> {
        let over = CancellationToken::new();
        let mut claim: Option<(String, Claim<(String, String)>)> = None;
        let mut _owned = None;
        loop {
            let next = tokio::select! {
                () = self.shutdown.cancelled() => return Err(Status::unavailable("shutting down")),
                () = over.cancelled() => return Err(Status::aborted("a newer stream of this proxy has come")),
                next = self.next(&mut reports) => next?,
            };
            let Some((report, place)) = next else {
                return Ok(());
            };
            let report = Report::decode(report);
            let mut report = report.map_err(|error| Status::internal(error.to_string()))?;
            self.gate.sift(&caller, &mut report)?;
            match &claim {
                None => {
                    let proxy = checked("report.proxy", &report.proxy)?.to_owned();
                    _owned = self.gate.own(&caller, &proxy)?;
                    let peer = (proxy.clone(), process.clone());
                    let place = self.proxies.claim(peer, over.clone(), self.max_proxies);
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
            place.send(Update::Reported(report));
        }
    }

    /// Waits for a report, then for room at the state's owner, and has the newest that has come by then: it says
    /// all that those before it do. They are read, or they would fill the connection, and its discovery stream
    /// would wait with them.
    async fn next(
        &self,
        reports: &mut Streaming<Bytes>,
    ) -> Result<Option<(Bytes, mpsc::Permit<'_, Update>)>, Status> {
        let Some(mut newest) = reports.message().await? else {
            return Ok(None);
        };
        let place = self.updates.reserve();
        tokio::pin!(place);
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                place = &mut place => {
                    let place = place.map_err(|_| Status::unavailable("shutting down"))?;
                    return Ok(Some((newest, place)));
                }
                report = reports.message(), if open => match report {
                    Ok(Some(report)) => newest = report,
                    // An error is there again when the next one is asked for.
                    Ok(None) | Err(_) => open = false,
                },
            }
        }
    }
}

impl NamedService for Service {
    const NAME: &'static str = SERVICE_NAME;
}

impl tonic::codegen::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            if request.uri().path() != STREAM {
                return Ok(Status::unimplemented("no such method").into_http());
            }
            let mut grpc =
                Grpc::new(Encoded).apply_max_message_size_config(Some(MAX_REPORT_BYTES), None);
            Ok(grpc.streaming(service, request).await)
        })
    }
}

impl StreamingService<Bytes> for Service {
    type Response = ReportAnswer;
    type ResponseStream = ReceiverStream<Result<ReportAnswer, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let caller = self
            .gate
            .caller(request.extensions(), request.metadata().as_ref());
        let caller = match caller {
            Ok(caller) => caller,
            Err(status) => return ready(Err(status)),
        };
        let (answers, stream) = mpsc::channel(1);
        let service = self.clone();
        let process = newest::process(request.metadata());
        tokio::spawn(async move {
            // A caller that has gone is not read from any longer.
            let ended = tokio::select! {
                ended = service.listen(caller, process, request.into_inner()) => ended,
                () = answers.closed() => return,
            };
            if let Err(status) = ended {
                // Nobody listens where the caller has gone.
                let _ = answers.send(Err(status)).await;
            }
        });
        ready(Ok(Response::new(ReceiverStream::new(stream))))
    }
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn of_reports_that_wait_for_the_owner_the_newest_is_taken_and_all_are_read() {
        let mut sent = Vec::new();
        for proxy in ["a", "b", "c"] {
            let report = Report {
                proxy: proxy.to_owned(),
                records: Vec::new(),
            };
            // As gRPC frames a message: not compressed, its length, itself.
            sent.put_u8(0);
            sent.put_u32(report.encoded_len() as u32);
            report.encode(&mut sent).unwrap();
        }
        let body = Full::new(Bytes::from(sent));
        let mut reports = Streaming::new_request(Encoded, body, None, None);
        let (updates, mut owner) = mpsc::channel(1);
        let service = Service::server(updates.clone(), 1, CancellationToken::new());
        let busy = Update::Complained(None);
        updates.send(busy).await.unwrap();
        let (next, _) = tokio::join!(service.next(&mut reports), owner.recv());
        let (newest, place) = next.unwrap().unwrap();
        assert_eq!(Report::decode(newest).unwrap().proxy, "c");
        drop(place);
        assert!(service.next(&mut reports).await.unwrap().is_none());
    }
}
