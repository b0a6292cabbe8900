// SPDX-License-Identifier: Apache-2.0
//! Calls and streams that a module opened, and what their server has answered.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::headers::Headers;

/// The request of an HTTP callout.
#[derive(Debug, Clone)]
pub struct HttpCallRequest {
    /// The Envoy cluster it goes to.
    pub cluster: String,
    /// Its headers, `:method`, `:path` and `:authority` among them.
    pub headers: Headers,
    /// Its body.
    pub body: Vec<u8>,
    /// Its trailers.
    pub trailers: Headers,
    /// Zero: none.
    pub timeout: Duration,
}

/// What a gRPC call or stream was opened with.
#[derive(Debug, Clone)]
pub struct GrpcRequest {
    /// The Envoy cluster it goes to.
    pub cluster: String,
    /// The full service name, such as `package.v1.Service`.
    pub service: String,
    /// The method name.
    pub method: String,
    /// Metadata sent by the module.
    pub initial_metadata: Headers,
    /// Zero: none. Streams have none.
    pub timeout: Duration,
}

#[derive(Debug)]
pub(crate) struct OpenCall {
    pub(crate) root: u32,
    pub(crate) request: GrpcRequest,
    pub(crate) message: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct OpenHttpCall {
    pub(crate) root: u32,
    pub(crate) request: HttpCallRequest,
}

#[derive(Debug)]
pub(crate) struct OpenStream {
    pub(crate) root: u32,
    pub(crate) request: GrpcRequest,
    /// Messages that the test has not taken yet.
    pub(crate) sent: Vec<Vec<u8>>,
    /// The module said that it sends no more.
    pub(crate) half_closed: bool,
    /// The server ended it.
    pub(crate) remote_closed: bool,
}

/// What is open in one VM. The two low bits of a token tell its kind, as in Envoy.
#[derive(Debug, Default)]
pub(crate) struct Callouts {
    pub(crate) http: BTreeMap<u32, OpenHttpCall>,
    pub(crate) calls: BTreeMap<u32, OpenCall>,
    pub(crate) streams: BTreeMap<u32, OpenStream>,
    opened: [u32; 3],
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callout {
    Http = 0,
    GrpcCall = 1,
    GrpcStream = 2,
}

impl Callout {
    pub(crate) fn of(token: u32) -> Option<Self> {
        match token & 3 {
            0 => Some(Self::Http),
            1 => Some(Self::GrpcCall),
            2 => Some(Self::GrpcStream),
            _ => None,
        }
    }
}

impl Callouts {
    /// A stream of a root is open from now on, by this token.
    pub(crate) fn open_stream(&mut self, root: u32, request: GrpcRequest, token: u32) {
        let stream = OpenStream {
            root,
            request,
            sent: Vec::new(),
            half_closed: false,
            remote_closed: false,
        };
        self.streams.insert(token, stream);
    }

    pub(crate) fn next_token(&mut self, kind: Callout) -> u32 {
        self.opened[kind as usize] += 4;
        self.opened[kind as usize] + kind as u32
    }
}

/// What a callback about a callout can read while it runs.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) message: Option<Vec<u8>>,
    pub(crate) initial_metadata: Option<Headers>,
    pub(crate) trailing_metadata: Option<Headers>,
    pub(crate) http: Option<HttpAnswer>,
    pub(crate) status: u32,
    pub(crate) status_message: String,
}

#[derive(Debug, Default)]
pub(crate) struct HttpAnswer {
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Headers,
}

/// How Envoy reads the `GrpcService` argument of a callout.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Cluster(String),
    /// Not a message. Envoy then takes it for a cluster name if there is such a cluster.
    Unparsable,
    /// A message that names no target. Envoy 1.40 aborts.
    Nothing,
}

/// Reads `GrpcService { envoy_grpc: 1 { cluster_name: 1 } }`, skipping every other field.
pub(crate) fn target(service: &[u8]) -> Target {
    let Some(fields) = protobuf_fields(service) else {
        return Target::Unparsable;
    };
    let Some(envoy_grpc) = fields.iter().rev().find(|(number, _)| *number == 1) else {
        return Target::Nothing;
    };
    let Some(fields) = protobuf_fields(envoy_grpc.1) else {
        return Target::Unparsable;
    };
    let name = fields
        .iter()
        .rev()
        .find(|(number, _)| *number == 1)
        .map(|(_, name)| *name);
    match name {
        Some(name) if !name.is_empty() => match std::str::from_utf8(name) {
            Ok(name) => Target::Cluster(name.to_owned()),
            Err(_) => Target::Unparsable,
        },
        _ => Target::Nothing,
    }
}

/// The length-delimited fields of a message; `None` if it is not one.
fn protobuf_fields(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let skipped = match tag & 7 {
            0 => varint(&mut bytes).map(|_| 0)?,
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)?).ok()?,
            5 => 4,
            _ => return None,
        };
        if tag >> 3 == 0 || skipped > bytes.len() {
            return None;
        }
        let (value, rest) = bytes.split_at(skipped);
        bytes = rest;
        if tag & 7 == 2 {
            fields.push((tag >> 3, value));
        }
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Target, target};

    #[test]
    fn the_cluster_name_is_found_between_other_fields() {
        // envoy_grpc { cluster_name: "abc", authority: "z" }, timeout { seconds: 1 }
        let service = b"\x0a\x08\x0a\x03abc\x12\x01z\x1a\x02\x08\x01";
        assert_eq!(target(service), Target::Cluster("abc".into()));
    }

    #[test]
    fn a_bare_name_is_not_a_message_and_an_empty_one_names_nothing() {
        assert_eq!(target(b"weir-control"), Target::Unparsable);
        assert_eq!(target(b""), Target::Nothing);
        // "*" is field 5, the next byte its size: a name that parses.
        assert_eq!(target(b"*\x01x"), Target::Nothing);
    }
}
