// SPDX-License-Identifier: Apache-2.0
//! Responses as bytes. The body of a resource was encoded once, when it was published; here it is
//! copied into each stream's message and nowhere else.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use hyper::body::{Body, Frame};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use tokio::sync::mpsc;
use tonic::Status;
use weir_fleet::snapshot::Resource;

use super::subscription::Delta;

/// An `envoy.service.discovery.v3.DeltaDiscoveryResponse` without copies of what it is made of.
#[derive(Debug)]
pub struct Response {
    /// Of all resources in it.
    pub type_url: &'static str,
    /// What is to be sent.
    pub delta: Delta,
}

/// Field numbers of envoy/service/discovery/v3/discovery.proto.
mod response {
    pub(super) const RESOURCES: u32 = 2;
    pub(super) const TYPE_URL: u32 = 4;
    pub(super) const NONCE: u32 = 5;
    pub(super) const REMOVED: u32 = 6;
}
mod resource {
    pub(super) const VERSION: u32 = 1;
    pub(super) const RESOURCE: u32 = 2;
    pub(super) const NAME: u32 = 3;
}
/// Of google/protobuf/any.proto.
mod any {
    pub(super) const TYPE_URL: u32 = 1;
    pub(super) const VALUE: u32 = 2;
}

impl Response {
    /// Bytes that it takes.
    pub fn encoded_len(&self) -> usize {
        let Delta {
            nonce,
            resources,
            removed,
        } = &self.delta;
        let resources = resources
            .iter()
            .map(|resource| len(response::RESOURCES, self.resource_len(resource)));
        let removed = removed
            .iter()
            .map(|name| len(response::REMOVED, name.len()));
        len(response::TYPE_URL, self.type_url.len())
            + len(response::NONCE, nonce.len())
            + resources.sum::<usize>()
            + removed.sum::<usize>()
    }

    /// Writes it.
    pub fn encode(&self, to: &mut impl BufMut) {
        for resource in &self.delta.resources {
            start(response::RESOURCES, self.resource_len(resource), to);
            let (name, Resource { version, body }) = resource;
            field(resource::VERSION, version.as_bytes(), to);
            start(resource::RESOURCE, self.any_len(body), to);
            field(any::TYPE_URL, self.type_url.as_bytes(), to);
            field(any::VALUE, body, to);
            field(resource::NAME, name.as_bytes(), to);
        }
        field(response::TYPE_URL, self.type_url.as_bytes(), to);
        field(response::NONCE, self.delta.nonce.as_bytes(), to);
        for name in &self.delta.removed {
            field(response::REMOVED, name.as_bytes(), to);
        }
    }

    /// The message of gRPC that it is: not compressed, its length, itself.
    fn framed(&self) -> Result<Bytes, Status> {
        let bytes = self.encoded_len();
        let length = u32::try_from(bytes)
            .map_err(|_| Status::resource_exhausted("a response is over 4 GiB"))?;
        let mut message = BytesMut::with_capacity(1 + size_of::<u32>() + bytes);
        message.put_u8(0);
        message.put_u32(length);
        self.encode(&mut message);
        Ok(message.freeze())
    }

    fn resource_len(&self, (name, Resource { version, body }): &(String, Resource)) -> usize {
        len(resource::VERSION, version.len())
            + len(resource::RESOURCE, self.any_len(body))
            + len(resource::NAME, name.len())
    }

    fn any_len(&self, body: &[u8]) -> usize {
        len(any::TYPE_URL, self.type_url.len()) + len(any::VALUE, body.len())
    }
}

/// Bytes of a field whose content takes this many.
fn len(tag: u32, content: usize) -> usize {
    key_len(tag) + encoded_len_varint(content as u64) + content
}

fn start(tag: u32, content: usize, to: &mut impl BufMut) {
    encode_key(tag, WireType::LengthDelimited, to);
    encode_varint(content as u64, to);
}

fn field(tag: u32, content: &[u8], to: &mut impl BufMut) {
    start(tag, content.len(), to);
    to.put_slice(content);
}

/// The trailers with which a stream ends.
pub(crate) fn end(status: &Status) -> Result<Frame<Bytes>, Status> {
    let mut trailers = HeaderMap::new();
    status.add_header(&mut trailers)?;
    Ok(Frame::trailers(trailers))
}

/// The responses of a stream as the body of its answer. Each is encoded when it is about to be written, into bytes
/// that go when they are written: the encoder of tonic keeps a buffer for each stream, of up to twice its largest
/// response, for as long as the stream lives.
#[derive(Debug)]
pub(super) struct Responses {
    waiting: mpsc::Receiver<Result<Response, Status>>,
    ended: bool,
}

impl Responses {
    pub(super) fn new(waiting: mpsc::Receiver<Result<Response, Status>>) -> Self {
        Self {
            waiting,
            ended: false,
        }
    }
}

impl Body for Responses {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let response = ready!(self.waiting.poll_recv(context));
        let framed = response.map(|response| response.and_then(|response| response.framed()));
        let status = match framed {
            Some(Ok(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Some(Err(status)) => status,
            None => Status::ok(""),
        };
        self.ended = true;
        Poll::Ready(Some(end(&status)))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::service::discovery::v3 as discovery;
    use envoy_types::pb::google::protobuf::Any;
    use prost::Message;

    use super::*;

    #[test]
    fn a_response_is_what_envoys_own_definition_makes_of_it() {
        let type_url = "type.googleapis.com/weir.v1.HostTable";
        let body = |n: usize| vec![n as u8; n];
        let resource = |n: usize| Resource {
            version: format!("e.{n}").into(),
            body: body(n).into(),
        };
        // Around the sizes at which lengths take another byte.
        let sizes = [0, 1, 100, 127, 128, 16_383, 16_384, 300_000];
        let response = Response {
            type_url,
            delta: Delta {
                nonce: "1f".into(),
                resources: sizes.map(|n| (format!("rules/{n}"), resource(n))).into(),
                removed: vec!["gone".to_owned(), String::new()],
            },
        };
        let expected = discovery::DeltaDiscoveryResponse {
            type_url: type_url.to_owned(),
            nonce: "1f".to_owned(),
            resources: sizes
                .map(|n| discovery::Resource {
                    name: format!("rules/{n}"),
                    version: format!("e.{n}"),
                    resource: Some(Any {
                        type_url: type_url.to_owned(),
                        value: body(n),
                    }),
                    ..Default::default()
                })
                .into(),
            removed_resources: vec!["gone".to_owned(), String::new()],
            ..Default::default()
        };
        let mut bytes = Vec::new();
        response.encode(&mut bytes);
        assert_eq!(bytes.len(), response.encoded_len());
        let read = discovery::DeltaDiscoveryResponse::decode(bytes.as_slice()).unwrap();
        assert_eq!(read, expected);
        let framed = response.framed().unwrap();
        assert_eq!(
            framed[..5],
            [&[0][..], &(bytes.len() as u32).to_be_bytes()].concat()
        );
        assert_eq!(framed[5..], bytes);
    }
}
