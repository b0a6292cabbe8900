// SPDX-License-Identifier: Apache-2.0
//! weir.v1.Reports: what proxies say they did.

mod encoded;
pub mod end;
mod waiting;

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use encoded::Encoded;
pub use end::End;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use tracing::{debug, warn};
use waiting::Waiting;
use weir_fleet::decoded;
use weir_fleet::pace;
use weir_fleet::update::Reported;
use weir_tables::v1::reports_server::SERVICE_NAME;
use weir_tables::v1::{Report, ReportAnswer};

use crate::begun;
use crate::config::ReportLimits;
use crate::gate::{Caller, Gate, Owned};
use crate::metrics::Metrics;
use crate::newest::{self, Claim, Newest, checked};
use crate::news::News;
use crate::seldom::Seldom;
use crate::share::Room;

type Answer = Result<ReportAnswer, Status>;

const STREAM: &str = "/weir.v1.Reports/Stream";

/// The service. What `weir_tables` generates for it would decode each report as it comes, and a decoded one takes
/// several times the memory: those that wait for the state's owner wait encoded, as one a stream. Clones are the same.
#[derive(Clone, Debug)]
pub struct Service {
    updates: mpsc::Sender<News>,
    /// By proxy and process.
    proxies: Newest<(String, String)>,
    limits: ReportLimits,
    room: Room,
    metrics: Metrics,
    /// When a stream was last said to be refused: whoever is refused comes back at once.
    said: Arc<Mutex<Seldom>>,
    gate: Gate,
    shutdown: CancellationToken,
}

/// The proxy of a stream.
#[derive(Debug)]
struct Speaker {
    proxy: String,
    _claim: Option<Claim<(String, String)>>,
    _owned: Option<Owned>,
}

/// A filter of today sends at most 1 MiB, whatever it counted. Of older ones a report has the counters by host and
/// rank of every VM of a proxy: 16 worker threads, 200 hosts and 256 ranks in use take 7 MB. A larger report ends its
/// stream.
const MAX_REPORT_BYTES: usize = 16 << 20;
/// What one may take in memory: four times that of counters by rank, of which most of a large report are.
const MAX_DECODED_BYTES: usize = 4 * MAX_REPORT_BYTES;

impl Service {
    /// A server that tells `updates` until `shutdown`.
    pub fn server(
        updates: mpsc::Sender<News>,
        limits: ReportLimits,
        metrics: Metrics,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            updates,
            proxies: Newest::default(),
            limits,
            room: Room::new(
                limits.max_waiting_bytes,
                metrics.waiting_report_bytes.clone(),
            ),
            metrics,
            said: Arc::default(),
            gate: Gate::default(),
            shutdown,
        }
    }

    /// The same where callers need leave.
    pub fn guarded(self, gate: Gate) -> Self {
        Self { gate, ..self }
    }

    /// Takes reports and answers each; `speaker` is who it is found to be.
    async fn listen(
        &self,
        caller: &Caller,
        process: String,
        mut reports: Streaming<Bytes>,
        answers: &mpsc::Sender<Answer>,
        speaker: &mut Option<Speaker>,
    ) -> Result<(), End> {
        let over = CancellationToken::new();
        let (mut taken, mut unsaid) = (0, true);
        loop {
            let next = self.next(&mut reports);
            tokio::pin!(next);
            let next = loop {
                tokio::select! {
                    () = self.shutdown.cancelled() => return Err(End::Shutdown),
                    () = over.cancelled() => return Err(End::Superseded),
                    // Of answers only the newest waits: not everybody reads them.
                    place = answers.reserve(), if unsaid => match place {
                        Ok(place) => {
                            let pause_ms = pace::pause(self.proxies.len()).as_millis() as u32;
                            place.send(Ok(ReportAnswer { taken, pause_ms }));
                            unsaid = false;
                        }
                        Err(_) => return Ok(()),
                    },
                    next = &mut next => break next?,
                }
            };
            let Some((waiting, place)) = next else {
                return Ok(());
            };
            let Waiting {
                report,
                reports,
                mut share,
            } = waiting;
            let bytes = decoded::bytes(&decoded::REPORT, &report);
            let bytes = bytes.map_err(End::malformed)?;
            if bytes > MAX_DECODED_BYTES {
                return Err(End::decodes_to(bytes));
            }
            share.hold(bytes)?;
            let mut report = Report::decode(report).map_err(End::malformed)?;
            let caps = self.gate.sift(caller, &mut report).map_err(End::Denied)?;
            match speaker {
                None => {
                    let proxy = checked("report.proxy", &report.proxy).map_err(End::Name)?;
                    let peer = (proxy.to_owned(), process.clone());
                    let speaker = speaker.insert(Speaker {
                        proxy: proxy.to_owned(),
                        _claim: None,
                        _owned: self.gate.own(caller, proxy).map_err(End::Denied)?,
                    });
                    let most = self.limits.max_proxies;
                    let claim = self.proxies.claim(peer, over.clone(), most);
                    speaker._claim = Some(claim.ok_or(End::TooManyProxies)?);
                }
                Some(speaker) if speaker.proxy != report.proxy => {
                    let why = "report.proxy: changed within the stream";
                    return Err(End::Name(Status::invalid_argument(why)));
                }
                Some(_) => {}
            }
            let reported = Reported { report, caps };
            place.send(News::Reported { reported, share });
            (taken, unsaid) = (taken + reports, true);
        }
    }

    /// Waits for a report, then for room at the state's owner, and has all that have come by then. They are read, or
    /// they would fill the connection, and its discovery stream would wait with them.
    async fn next(
        &self,
        reports: &mut Streaming<Bytes>,
    ) -> Result<Option<(Waiting, mpsc::Permit<'_, News>)>, End> {
        let first = tokio::time::timeout(self.limits.forget_after, reports.message());
        let first = first.await.map_err(|_| End::Silent)?;
        let Some(first) = first.map_err(End::unread)? else {
            return Ok(None);
        };
        let mut waiting = Waiting::new(first, self.room.share())?;
        let place = self.updates.reserve();
        tokio::pin!(place);
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                place = &mut place => {
                    let place = place.map_err(|_| End::Shutdown)?;
                    return Ok(Some((waiting, place)));
                }
                report = reports.message(), if open => match report {
                    Ok(Some(report)) => waiting.add(report)?,
                    // An error is there again when the next one is asked for.
                    Ok(None) | Err(_) => open = false,
                },
            }
        }
    }

    /// Counts the end of a stream, and says it where something is wrong.
    fn ended(&self, end: &End, proxy: Option<&str>, peer: Option<SocketAddr>) {
        self.metrics.report_stream_ended(end.as_str());
        if !end.is_refusal() {
            debug!(
                proxy,
                ?peer,
                reason = end.as_str(),
                "stream of reports ended"
            );
            return;
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(unsaid) = said.is_due() {
            warn!(
                proxy,
                ?peer,
                reason = end.as_str(),
                ?end,
                unsaid,
                "stream of reports refused"
            );
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
            let share = service.room.share();
            let request = request.map(|body| begun::counted(body, share));
            let mut grpc =
                Grpc::new(Encoded).apply_max_message_size_config(Some(MAX_REPORT_BYTES), None);
            Ok(grpc.streaming(service, request).await)
        })
    }
}

impl StreamingService<Bytes> for Service {
    type Response = ReportAnswer;
    type ResponseStream = ReceiverStream<Answer>;
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
        let peer = request.remote_addr();
        let process = newest::process(request.metadata());
        tokio::spawn(async move {
            let mut speaker = None;
            // A caller that has gone is not read from any longer.
            let listened = tokio::select! {
                listened = service.listen(&caller, process, request.into_inner(), &answers, &mut speaker) => listened,
                () = answers.closed() => return,
            };
            if let Err(end) = listened {
                let proxy = speaker.as_ref().map(|speaker| speaker.proxy.as_str());
                service.ended(&end, proxy, peer);
                // Nobody listens where the caller has gone.
                let _ = answers.send(Err(end.into_status())).await;
            }
        });
        ready(Ok(Response::new(ReceiverStream::new(stream))))
    }
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;
    use http_body_util::Full;
    use tokio_stream::StreamExt;
    use weir_fleet::Update;
    use weir_tables::v1::{ClusterRecord, VmRecord};

    use super::*;

    /// As gRPC frames messages: not compressed, their length, themselves.
    fn stream(reports: &[Report]) -> Streaming<Bytes> {
        let mut sent = Vec::new();
        for report in reports {
            sent.put_u8(0);
            sent.put_u32(report.encoded_len() as u32);
            report.encode(&mut sent).unwrap();
        }
        Streaming::new_request(
            Encoded,
            Full::new(Bytes::from(sent)),
            None,
            Some(MAX_REPORT_BYTES),
        )
    }

    fn report(epoch: u64, changes: bool) -> Report {
        Report {
            proxy: "p".to_owned(),
            records: vec![VmRecord {
                epoch,
                ..Default::default()
            }],
            changes,
        }
    }

    /// Changes of so many bytes, and some.
    fn large(bytes: usize) -> Report {
        let mut large = report(1, true);
        large.records[0].clusters = vec![ClusterRecord {
            cluster: "c".repeat(bytes),
            ..Default::default()
        }];
        large
    }

    fn service(updates: mpsc::Sender<News>) -> Service {
        let limits = ReportLimits {
            max_proxies: 1,
            max_vms: 1,
            max_rows: 1,
            max_waiting_bytes: 14 << 20,
            forget_after: std::time::Duration::from_secs(60),
        };
        Service::server(
            updates,
            limits,
            Metrics::default(),
            CancellationToken::new(),
        )
    }

    /// Epochs of what is taken of three reports that came while the owner was busy, and how many they were.
    async fn taken(changes: bool) -> (Vec<u64>, u64) {
        let mut reports = stream(&[1, 2, 3].map(|epoch| report(epoch, changes)));
        let (updates, mut owner) = mpsc::channel(1);
        let service = service(updates.clone());
        updates.send(Update::Complained(None).into()).await.unwrap();
        let (next, _) = tokio::join!(service.next(&mut reports), owner.recv());
        let (waiting, place) = next.unwrap().unwrap();
        drop(place);
        assert!(
            service.next(&mut reports).await.unwrap().is_none(),
            "all were read"
        );
        let report = Report::decode(waiting.report).unwrap();
        let epochs = report.records.iter().map(|record| record.epoch);
        (epochs.collect(), waiting.reports)
    }

    #[tokio::test]
    async fn of_whole_reports_that_wait_for_the_owner_the_newest_is_taken() {
        assert_eq!(taken(false).await, (vec![3], 3));
    }

    #[tokio::test]
    async fn of_changes_that_wait_for_the_owner_nothing_is_lost() {
        assert_eq!(taken(true).await, (vec![1, 2, 3], 3));
    }

    #[tokio::test]
    async fn who_sends_changes_without_end_to_a_busy_owner_is_ended() {
        let large = large(6 << 20);
        let mut reports = stream(&[large.clone(), large.clone(), large]);
        let (updates, _owner) = mpsc::channel(1);
        updates.send(Update::Complained(None).into()).await.unwrap();
        let end = service(updates).next(&mut reports).await.unwrap_err();
        assert_eq!(end.as_str(), "too_fast");
    }

    /// What comes of a report that is sent to an owner who is not busy.
    async fn listened(report: Report) -> (Result<(), End>, Option<News>) {
        let (updates, mut owner) = mpsc::channel(1);
        let service = service(updates);
        let (answers, _told) = mpsc::channel(1);
        let end = service
            .listen(
                &Caller::default(),
                String::new(),
                stream(&[report]),
                &answers,
                &mut None,
            )
            .await;
        (end, owner.try_recv().ok())
    }

    #[tokio::test]
    async fn a_report_that_is_small_until_it_is_decoded_is_refused() {
        let mut empty = report(1, false);
        empty.records[0].clusters = vec![ClusterRecord::default(); 1 << 20];
        assert!(empty.encoded_len() < 3 << 20);
        let (end, taken) = listened(empty).await;
        assert_eq!(end.unwrap_err().as_str(), "too_large");
        assert!(taken.is_none());
    }

    #[tokio::test]
    async fn what_a_report_takes_is_counted_until_its_owner_has_taken_it() {
        let (end, taken) = listened(large(5 << 20)).await;
        end.unwrap();
        let Some(News::Reported { share, .. }) = taken else {
            panic!("{taken:?}");
        };
        assert_eq!(share.bytes() >> 20, 5);
    }

    #[tokio::test]
    async fn reports_that_have_begun_to_come_have_room_for_so_many_bytes_alone() {
        let (updates, _owner) = mpsc::channel(1);
        let service = service(updates);
        let mut sent = Vec::new();
        sent.put_u8(0);
        sent.put_u32(MAX_REPORT_BYTES as u32);
        sent.resize(8 << 20, 0);
        let frame = || Ok::<_, Status>(hyper::body::Frame::data(Bytes::from(sent.clone())));
        let begun = || {
            let frames = tokio_stream::iter([frame()]).chain(tokio_stream::pending());
            let body = Body::new(http_body_util::StreamBody::new(frames));
            let body = begun::counted(body, service.room.share());
            Streaming::new_request(Encoded, body, None, Some(MAX_REPORT_BYTES))
        };
        let [mut one, mut two] = [begun(), begun()];
        let first = service.next(&mut one);
        tokio::pin!(first);
        let end = tokio::select! {
            biased;
            _ = &mut first => panic!("it is not whole"),
            second = service.next(&mut two) => second.unwrap_err(),
        };
        assert_eq!(end.as_str(), "no_room");
    }

    #[tokio::test]
    async fn reports_that_wait_of_all_streams_have_room_for_so_many_bytes_alone() {
        let large = large(8 << 20);
        let (updates, mut owner) = mpsc::channel(1);
        let service = service(updates.clone());
        updates.send(Update::Complained(None).into()).await.unwrap();
        let [mut one, mut two] = [(); 2].map(|()| stream(std::slice::from_ref(&large)));
        let first = service.next(&mut one);
        tokio::pin!(first);
        let end = tokio::select! {
            biased;
            _ = &mut first => panic!("the owner is busy"),
            second = service.next(&mut two) => second.unwrap_err(),
        };
        assert_eq!(end.as_str(), "no_room");
        assert_eq!(service.metrics.waiting_report_bytes.get() >> 20, 8);
        owner.recv().await.unwrap();
        drop(first.await.unwrap());
        assert_eq!(service.metrics.waiting_report_bytes.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_reports_ends_before_what_is_kept_of_it_is_wrong() {
        let body = Body::new(http_body_util::StreamBody::new(tokio_stream::pending::<
            Result<hyper::body::Frame<Bytes>, Status>,
        >()));
        let mut reports = Streaming::new_request(Encoded, body, None, None);
        let (updates, _owner) = mpsc::channel(1);
        let end = service(updates).next(&mut reports).await.unwrap_err();
        assert_eq!(end.as_str(), "silent");
    }
}
