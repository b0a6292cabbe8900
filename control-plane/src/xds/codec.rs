// SPDX-License-Identifier: Apache-2.0
//! Responses as bytes. The body of a resource was encoded once, when it was published; here it is
//! copied into each stream's buffer and nowhere else.

use bytes::BufMut;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use tonic::Status;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic_prost::ProstDecoder;

use super::subscription::Delta;
use crate::snapshot::Resource;

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

/// The codec of a stream.
#[derive(Debug, Default)]
pub(super) struct DeltaCodec;

impl Codec for DeltaCodec {
    type Encode = Response;
    type Decode = DeltaDiscoveryRequest;
    type Encoder = Self;
    type Decoder = ProstDecoder<DeltaDiscoveryRequest>;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::default()
    }
}

impl Encoder for DeltaCodec {
    type Item = Response;
    type Error = Status;

    fn encode(&mut self, response: Response, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.reserve(response.encoded_len());
        response.encode(to);
        Ok(())
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
    }
}
