// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.1 by hand, one exchange a connection: what came, and whether all of it did.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where a host takes connections.
pub(crate) trait Address {
    type Stream: AsyncRead + AsyncWrite + Unpin;

    async fn connect(&self) -> Self::Stream;
}

impl Address for SocketAddr {
    type Stream = TcpStream;

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self).await.unwrap()
    }
}

/// A request that was sent. Dropping it leaves.
pub(crate) struct Exchange<S = TcpStream> {
    stream: S,
    read: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 if the connection ended before a status.
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as the protocol says.
    pub(crate) whole: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Exchange<S> {
    /// Sends `head` (request line and headers) and `body`.
    pub(crate) async fn send(address: &impl Address<Stream = S>, head: &str, body: &[u8]) -> Self {
        Self::over(address.connect().await, head, body, body.len()).await
    }

    /// Sends a body whose last byte never comes.
    pub(crate) async fn send_unfinished(
        address: &impl Address<Stream = S>,
        head: &str,
        body: &[u8],
    ) -> Self {
        Self::over(address.connect().await, head, body, body.len() + 1).await
    }

    async fn over(mut stream: S, head: &str, body: &[u8], length: usize) -> Self {
        let head =
            format!("{head}host: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let read = Vec::new();
        Self { stream, read }
    }

    /// Reads at least so many bytes, if as many come.
    pub(crate) async fn read(&mut self, bytes: usize) {
        while self.read.len() < bytes {
            match self.stream.read_buf(&mut self.read).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Reads until the connection ends, well or not.
    pub(crate) async fn answer(mut self) -> Answer {
        self.read(usize::MAX).await;
        Answer::parse(&self.read)
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, rest) = match end {
            Some(end) => (&bytes[..end + 2], &bytes[end + 4..]),
            None => (&b""[..], &b""[..]),
        };
        let head = String::from_utf8(head.to_vec()).unwrap();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut answer = Self {
            status: status.unwrap_or(0),
            head,
            body: Vec::new(),
            whole: false,
        };
        (answer.body, answer.whole) = match answer.header("content-length") {
            Some(length) => (rest.to_vec(), length.parse() == Ok(rest.len())),
            None => joined(rest),
        };
        answer
    }

    /// A header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value)
            .next()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// That the answer is one whole line, with this status and these parts.
    #[track_caller]
    pub(crate) fn says(&self, status: u16, parts: &[&str]) {
        let text = self.text();
        assert_eq!(self.status, status, "{text}");
        assert!(
            self.whole && text.ends_with('\n') && text.lines().count() == 1,
            "{text:?}"
        );
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert!(self.header("x-worker-id").is_some(), "{}", self.head);
        assert!(
            self.header("endpoint-load-metrics").is_some(),
            "{}",
            self.head
        );
    }

    /// That it is all of this.
    #[track_caller]
    pub(crate) fn is(&self, expected: &[u8]) {
        assert_eq!((self.status, self.whole), (200, true), "{}", self.text());
        // Not assert_eq: some answers have megabytes.
        let same = self.body == expected;
        let shown =
            |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned();
        assert!(same, "{}\nis not\n{}", shown(&self.body), shown(expected));
    }
}

/// The chunks of a body, and whether the last one came.
fn joined(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let chunk = &rest[line + 2..];
        if size == 0 {
            return (body, chunk == b"\r\n");
        }
        if chunk.len() < size + 2 {
            body.extend_from_slice(&chunk[..chunk.len().min(size)]);
            break;
        }
        body.extend_from_slice(&chunk[..size]);
        rest = &chunk[size + 2..];
    }
    (body, false)
}
