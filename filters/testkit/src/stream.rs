// SPDX-License-Identifier: Apache-2.0
//! What Envoy keeps for one HTTP request and its response, seen from one filter.
//!
//! Envoy shows a header map or a body to the module only from the callback that delivers it until
//! the module lets it pass: once `on_request_headers` has returned `Continue`, the request headers
//! are out of reach in every later callback except `on_log`. This is reproduced here.

use std::collections::{BTreeMap, VecDeque};

use crate::abi::{Action, Direction, MapType, Status};
use crate::headers::Headers;

/// A reply that the module sent in place of the upstream's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalReply {
    /// The HTTP status the module asked for.
    pub status: u32,
    /// The headers the module added.
    pub headers: Headers,
    /// The body, or the message of a gRPC status.
    pub body: Vec<u8>,
    /// The gRPC status, if the module gave one.
    pub grpc_status: Option<u32>,
    /// The response code details, for access logs.
    pub details: String,
}

impl LocalReply {
    /// The response that Envoy makes of it, and its body: gRPC callers get status 200 and trailers only.
    pub(crate) fn response(&self, to_grpc: bool) -> (Headers, Vec<u8>) {
        let status = if to_grpc { 200 } else { self.status };
        let mut headers = Headers::new().with(":status", status.to_string());
        self.headers
            .iter()
            .for_each(|(name, value)| headers.add(name, value));
        if to_grpc {
            headers.set("content-type", b"application/grpc");
            let code = self
                .grpc_status
                .unwrap_or_else(|| grpc_status_of_http(self.status));
            headers.set("grpc-status", code.to_string().as_bytes());
            if !self.body.is_empty() {
                headers.set("grpc-message", &self.body);
            }
            return (headers, Vec::new());
        }
        if !self.body.is_empty() {
            headers.set("content-length", self.body.len().to_string().as_bytes());
            if headers.get("content-type").is_none() {
                headers.add("content-type", b"text/plain");
            }
        }
        (headers, self.body.clone())
    }
}

/// Envoy's `Grpc::Utility::httpToGrpcStatus`.
fn grpc_status_of_http(status: u32) -> u32 {
    match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502..=504 => 14,
        _ => 2,
    }
}

/// A part of a message that waits because an earlier one is held back.
#[derive(Debug)]
pub(crate) enum Piece {
    Body(Vec<u8>, bool),
    Trailers(Headers),
}

/// Where a direction is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paused {
    Headers,
    Body,
    Trailers,
}

/// One direction of a stream.
#[derive(Debug, Default)]
pub(crate) struct Half {
    pub(crate) headers: Option<Headers>,
    pub(crate) headers_shown: bool,
    pub(crate) trailers: Option<Headers>,
    pub(crate) trailers_shown: bool,
    /// What the module can read and change.
    pub(crate) body_shown: Option<Vec<u8>>,
    /// What went on to the next filter.
    pub(crate) body_passed: Vec<u8>,
    pub(crate) held: Option<Paused>,
    pub(crate) waiting: VecDeque<Piece>,
}

impl Half {
    /// Whether a piece has to wait for the module to resume what came before it.
    pub(crate) fn must_wait(&self) -> bool {
        self.held == Some(Paused::Headers)
    }

    pub(crate) fn show_headers(&mut self, headers: Headers) {
        self.headers = Some(headers);
        self.headers_shown = true;
    }

    pub(crate) fn after_headers(&mut self, action: Action) {
        match action {
            Action::Continue => self.headers_shown = false,
            Action::Pause => self.held = Some(Paused::Headers),
        }
    }

    /// Adds to the body that is held back, or starts anew; returns the size that is shown.
    pub(crate) fn show_body(&mut self, data: Vec<u8>) -> usize {
        let shown = self.body_shown.get_or_insert_default();
        shown.extend(data);
        shown.len()
    }

    pub(crate) fn after_body(&mut self, action: Action) {
        match action {
            Action::Continue => self.pass(),
            Action::Pause => self.held = Some(Paused::Body),
        }
    }

    pub(crate) fn after_trailers(&mut self, action: Action) {
        match action {
            Action::Continue => {
                self.pass();
                self.trailers_shown = false;
            }
            Action::Pause => self.held = Some(Paused::Trailers),
        }
    }

    /// Lets go of whatever is held.
    pub(crate) fn pass(&mut self) {
        self.held = None;
        self.headers_shown = false;
        self.body_passed
            .extend(self.body_shown.take().unwrap_or_default());
    }

    /// `proxy_set_buffer_bytes`, with the three cases that Envoy's buffer has.
    pub(crate) fn replace_body(
        &mut self,
        start: usize,
        size: usize,
        data: &[u8],
    ) -> Result<(), Status> {
        let body = self.body_shown.as_mut().ok_or(Status::BadArgument)?;
        if start == 0 {
            body.splice(..size.min(body.len()), data.iter().copied());
        } else if start >= body.len() {
            body.extend(data);
        } else {
            return Err(Status::BadArgument);
        }
        Ok(())
    }
}

/// One stream context.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) root: u32,
    pub(crate) request: Half,
    pub(crate) response: Half,
    pub(crate) local_reply: Option<LocalReply>,
    pub(crate) reset: bool,
    /// True during `proxy_on_log`.
    pub(crate) logging: bool,
    /// What the module gets for a map that does not exist, in `proxy_on_log`.
    pub(crate) absent_in_log: Status,
    pub(crate) properties: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) filter_state: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Stream {
    pub(crate) fn new(root: u32, absent_in_log: Status) -> Self {
        Self {
            root,
            request: Half::default(),
            response: Half::default(),
            local_reply: None,
            reset: false,
            logging: false,
            absent_in_log,
            properties: BTreeMap::new(),
            filter_state: BTreeMap::new(),
        }
    }

    pub(crate) fn half(&mut self, direction: Direction) -> &mut Half {
        match direction {
            Direction::Request => &mut self.request,
            Direction::Response => &mut self.response,
        }
    }

    /// A map that the module may read now.
    pub(crate) fn map(&self, map: MapType) -> Result<&Headers, Status> {
        let (shown, headers) = match map {
            MapType::Headers(Direction::Request) => {
                (self.request.headers_shown, &self.request.headers)
            }
            MapType::Trailers(Direction::Request) => {
                (self.request.trailers_shown, &self.request.trailers)
            }
            MapType::Headers(Direction::Response) => {
                (self.response.headers_shown, &self.response.headers)
            }
            MapType::Trailers(Direction::Response) => {
                (self.response.trailers_shown, &self.response.trailers)
            }
            _ => return Err(Status::BadArgument),
        };
        // Access loggers are not given the request trailers.
        let logged = self.logging && map != MapType::Trailers(Direction::Request);
        let absent = if self.logging {
            self.absent_in_log
        } else {
            Status::BadArgument
        };
        headers.as_ref().filter(|_| shown || logged).ok_or(absent)
    }

    /// A map that the module may change now.
    pub(crate) fn map_mut(&mut self, map: MapType) -> Result<&mut Headers, Status> {
        let (half, trailers) = match map {
            MapType::Headers(direction) => (self.half(direction), false),
            MapType::Trailers(direction) => (self.half(direction), true),
            _ => return Err(Status::BadArgument),
        };
        let (shown, headers) = match trailers {
            false => (half.headers_shown, &mut half.headers),
            true => (half.trailers_shown, &mut half.trailers),
        };
        headers
            .as_mut()
            .filter(|_| shown)
            .ok_or(Status::BadArgument)
    }

    pub(crate) fn is_grpc(&self) -> bool {
        let kind = self
            .request
            .headers
            .as_ref()
            .and_then(|headers| headers.get("content-type"));
        kind.is_some_and(|kind| kind == "application/grpc" || kind.starts_with("application/grpc+"))
    }
}
