// SPDX-License-Identifier: Apache-2.0
//! Who is let in: as many as there is room for, by TLS where there is a certificate, and nobody who is silent.
//!
//! ```text
//!  listener ── a place ── [handshake, limited] ── Connection ──> server, which pings
//!                                                     └─ read time-out
//! ```

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::{Connected, TcpConnectInfo};
use tracing::{Instrument, warn};

use crate::certificate;
use crate::gate::Peer;
use crate::seldom::Seldom;

/// What callers may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once; others wait to be taken.
    pub places: usize,
    /// For a TLS handshake.
    pub handshake: Duration,
    /// Without a byte from the caller. The server pings more often than that, so a caller that speaks HTTP/2
    /// has something to say.
    pub silence: Duration,
}

impl Limits {
    /// A sidecar's handshake takes milliseconds, a ping is answered or missed after seven seconds
    /// (`PING_INTERVAL` in `xds.rs`).
    pub fn with_places(places: usize) -> Self {
        Self {
            places,
            handshake: Duration::from_secs(10),
            silence: Duration::from_secs(15),
        }
    }
}

/// After an error of the listener: out of file descriptors, most likely.
const PAUSE: Duration = Duration::from_millis(100);

type Plain = Pin<Box<TimeoutStream<TcpStream>>>;

/// A caller, with or without TLS.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    peer: Peer,
    _place: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum Stream {
    Plain(Plain),
    Tls(Box<TlsStream<Plain>>),
}

/// Connections as they come, until `shutdown`, each by the newest `tls`.
pub fn incoming(
    listener: TcpListener,
    tls: Option<watch::Receiver<TlsAcceptor>>,
    limits: Limits,
    shutdown: CancellationToken,
) -> ReceiverStream<io::Result<Connection>> {
    let (connections, stream) = mpsc::channel(1);
    let door = Door {
        tls,
        limits,
        connections: connections.clone(),
    };
    let accept = async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = connections.closed() => {}
            () = door.accept(listener) => {}
        }
    };
    tokio::spawn(accept.in_current_span());
    ReceiverStream::new(stream)
}

#[derive(Clone)]
struct Door {
    tls: Option<watch::Receiver<TlsAcceptor>>,
    limits: Limits,
    connections: mpsc::Sender<io::Result<Connection>>,
}

impl Door {
    async fn accept(self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(self.limits.places));
        let (refusals, refused) = mpsc::channel(1);
        let log = tokio::spawn(log(refused).in_current_span());
        let _log = tokio_util::task::AbortOnDropHandle::new(log);
        let mut full = Seldom::default();
        loop {
            if places.available_permits() == 0 && full.is_due().is_some() {
                let places = self.limits.places;
                warn!(
                    places,
                    "every place for a connection is taken: others wait until one ends"
                );
            }
            // Never closed.
            let Ok(place) = places.clone().acquire_owned().await else {
                return;
            };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let (door, refusals) = (self.clone(), refusals.clone());
            let let_in = async move {
                let peer = stream.connect_info();
                let refused = door.let_in(stream, place).await.err();
                if let Some(reason) = refused {
                    // The log counts what it does not show.
                    let _ = refusals.send(Refusal { peer, reason }).await;
                }
            };
            tokio::spawn(let_in.in_current_span());
        }
    }

    async fn let_in(&self, stream: TcpStream, place: OwnedSemaphorePermit) -> io::Result<()> {
        let address = stream.connect_info();
        stream.set_nodelay(true)?;
        let mut stream = TimeoutStream::new(stream);
        stream.set_read_timeout(Some(self.limits.silence));
        let plain = Box::pin(stream);
        let (stream, identity) = match &self.tls {
            None => (Stream::Plain(plain), None),
            Some(tls) => {
                let late = || io::Error::new(io::ErrorKind::TimedOut, "no TLS handshake in time");
                let acceptor = tls.borrow().clone();
                let secure = timeout(self.limits.handshake, acceptor.accept(plain)).await;
                let secure = secure.unwrap_or_else(|_| Err(late()))?;
                let shown = secure.get_ref().1.peer_certificates();
                let identity = shown.and_then(|chain| certificate::identity(chain.first()?));
                (Stream::Tls(Box::new(secure)), identity)
            }
        };
        let connection = Connection {
            stream,
            peer: Peer { address, identity },
            _place: place,
        };
        // Nobody takes it where the server is ending.
        let _ = self.connections.send(Ok(connection)).await;
        Ok(())
    }
}

struct Refusal {
    peer: TcpConnectInfo,
    reason: io::Error,
}

/// Says who was refused and why, and how many were beside those that it says.
async fn log(mut refused: mpsc::Receiver<Refusal>) {
    let mut seldom = Seldom::default();
    while let Some(Refusal { peer, reason }) = refused.recv().await {
        let Some(unsaid) = seldom.is_due() else {
            continue;
        };
        let peer = peer.remote_addr().map(|address| address.to_string());
        let peer = peer.unwrap_or_default();
        warn!(peer, unsaid, "a connection was refused: {reason}");
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
