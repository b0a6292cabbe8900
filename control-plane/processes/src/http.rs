// SPDX-License-Identifier: Apache-2.0
//! Just enough HTTP to speak with processes on this machine.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const LIMIT: Duration = Duration::from_secs(2);
/// Of what changes something: a busy machine may take its time.
const LONG_LIMIT: Duration = Duration::from_secs(15);

/// What is asked of a process, beyond its pages.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Such as `PUT`.
    pub method: &'a str,
    /// With its query.
    pub path: &'a str,
    /// Beside those that every request has.
    pub headers: &'a [(&'a str, &'a str)],
    /// May be empty.
    pub body: &'a str,
}

/// What a process answered.
#[derive(Debug)]
pub struct Answer {
    /// As three digits.
    pub status: String,
    headers: String,
    /// After the headers, chunks joined.
    pub body: String,
}

/// Asks for a page.
///
/// # Errors
/// No answer within two seconds, or another status than 200.
pub fn get(address: SocketAddr, path: &str) -> Result<Answer> {
    let answer = ask(address, path)?;
    ensure!(
        answer.status == "200",
        "http://{address}{path}: status {}",
        answer.status
    );
    Ok(answer)
}

/// The answer to a GET, whatever its status.
///
/// # Errors
/// No whole answer within two seconds.
pub fn ask(address: SocketAddr, path: &str) -> Result<Answer> {
    let request = Request {
        method: "GET",
        path,
        headers: &[],
        body: "",
    };
    exchange(address, &request, LIMIT)
}

/// The answer to a request, whatever its status.
///
/// # Errors
/// No connection within two seconds, or no whole answer within fifteen.
pub fn send(address: SocketAddr, request: &Request) -> Result<Answer> {
    exchange(address, request, LONG_LIMIT)
}

fn exchange(address: SocketAddr, request: &Request, limit: Duration) -> Result<Answer> {
    let Request {
        method, path, body, ..
    } = request;
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in request.headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        text += &format!("content-length: {}\r\n", body.len());
    }
    text += "\r\n";
    text += body;
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(text.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Answer::parse(&answer).with_context(|| format!("http://{address}{path}"))
}

impl Answer {
    fn parse(answer: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(answer)?;
        let (head, body) = text
            .split_once("\r\n\r\n")
            .context("the answer has no end of headers")?;
        let (first, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let status = first
            .split(' ')
            .nth(1)
            .context("the answer has no status")?;
        let mut answer = Self {
            status: status.to_owned(),
            headers: headers.to_owned(),
            body: body.to_owned(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunk(body)?;
        }
        Ok(answer)
    }

    /// A field of the head, whatever the case of its name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

fn unchunk(mut rest: &str) -> Result<String> {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").context("a chunk has no size")?;
        let size = usize::from_str_radix(size, 16)?;
        if size == 0 {
            return Ok(body);
        }
        let (chunk, next) = after.split_at_checked(size).context("a chunk is cut")?;
        body.push_str(chunk);
        rest = next.strip_prefix("\r\n").context("a chunk has no end")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(answer: &str) -> Result<String> {
        Ok(Answer::parse(answer.as_bytes())?.body)
    }

    #[test]
    fn headers_are_found_whatever_their_case_and_the_body_follows_them() {
        let answer =
            Answer::parse(b"HTTP/1.1 200 OK\r\nX-Weir-Reason: random\r\n\r\nhello").unwrap();
        assert_eq!(answer.header("x-weir-reason"), Some("random"));
        assert_eq!(answer.header("x-weir-host"), None);
        assert_eq!(answer.status, "200");
        assert_eq!(answer.body, "hello");
    }

    #[test]
    fn chunks_are_joined() {
        let chunks = "3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n";
        let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
        assert_eq!(body(&answer).unwrap(), "abc0123456789");
    }

    #[test]
    fn cut_answers_are_refused() {
        for answer in [
            "",
            "HTTP/1.1\r\n\r\nbody",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc",
        ] {
            assert!(body(answer).is_err(), "{answer:?}");
        }
    }
}
