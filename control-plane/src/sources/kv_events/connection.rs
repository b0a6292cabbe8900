// SPDX-License-Identifier: Apache-2.0
//! A connection that speaks ZeroMQ's protocol.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use weir_fleet::poll::{Fault, PollError};
use weir_kv_events::zmtp::{self, Decoder, Said, Socket};

/// From the first packet to READY.
const OPENING: Duration = Duration::from_secs(5);
/// Until what is sent, a few bytes, is on its way: a peer that does not read is as good as gone.
const SENDING: Duration = Duration::from_secs(5);
/// Read at once.
const CHUNK: usize = 64 << 10;

/// One that is open, and after its READY.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    chunk: Box<[u8]>,
}

impl Connection {
    /// Opens one to a socket that fits, for messages up to so many bytes.
    pub(super) async fn open(
        at: SocketAddr,
        own: Socket,
        max_bytes: usize,
    ) -> Result<Self, PollError> {
        let opened = timeout(OPENING, Self::shake_hands(at, own, max_bytes)).await;
        opened.unwrap_or_else(|_| Err(timed_out(at, OPENING)))
    }

    async fn shake_hands(at: SocketAddr, own: Socket, max_bytes: usize) -> Result<Self, PollError> {
        let stream = TcpStream::connect(at).await;
        let stream = stream.map_err(|error| failed(at, &error))?;
        // Questions are small, and each waits for its answer.
        let _ = stream.set_nodelay(true);
        let mut connection = Self {
            stream,
            decoder: Decoder::new(own, max_bytes),
            chunk: vec![0; CHUNK].into(),
        };
        connection.send(&zmtp::greeting()).await?;
        connection.send(&zmtp::ready(own)).await?;
        loop {
            if connection.next_said().await? == Said::Ready {
                return Ok(connection);
            }
        }
    }

    /// Sends bytes, which are whole frames.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), PollError> {
        let sent = timeout(SENDING, self.stream.write_all(bytes)).await;
        match sent {
            Ok(sent) => sent.map_err(|error| self.failed(&error)),
            Err(_) => Err(self.does_not_read()),
        }
    }

    /// Whether a PING has an answer.
    pub(super) fn answers_pings(&self) -> bool {
        self.decoder.answers_pings()
    }

    /// The next thing said. Nothing is lost where that is given up.
    pub(super) async fn next_said(&mut self) -> Result<Said, PollError> {
        loop {
            match self.decoder.next_said() {
                Ok(Some(said)) => return Ok(said),
                Ok(None) => {}
                Err(error) => {
                    let fault = match error {
                        zmtp::Error::TooLarge { .. } => Fault::TooLarge,
                        _ => Fault::BadBody,
                    };
                    let detail = match self.stream.peer_addr() {
                        Ok(at) => format!("{at}: {error}"),
                        Err(_) => error.to_string(),
                    };
                    return Err(PollError::new(fault, detail));
                }
            }
            match self.stream.read(&mut self.chunk).await {
                Ok(0) => return Err(self.failed(&ErrorKind::UnexpectedEof.into())),
                Ok(read) => self
                    .decoder
                    .take(self.chunk.get(..read).unwrap_or_default()),
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    fn does_not_read(&self) -> PollError {
        let peer = match self.stream.peer_addr() {
            Ok(at) => at.to_string(),
            Err(error) => error.to_string(),
        };
        let detail = format!("{peer}: takes nothing for {SENDING:?}");
        PollError::new(Fault::TimedOut, detail)
    }

    fn failed(&self, error: &Error) -> PollError {
        match self.stream.peer_addr() {
            Ok(at) => failed(at, error),
            Err(_) => PollError::new(Fault::Failed, error),
        }
    }
}

/// Of whatever kind: an engine that publishes nothing may well answer requests.
fn failed(at: SocketAddr, error: &Error) -> PollError {
    PollError::new(Fault::Failed, format!("{at}: {error}"))
}

/// No answer within this time.
pub(super) fn timed_out(at: SocketAddr, limit: Duration) -> PollError {
    PollError::new(Fault::TimedOut, format!("{at}: no answer in {limit:?}"))
}
