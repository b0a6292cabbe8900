// SPDX-License-Identifier: Apache-2.0
//! weir-control's end of a table stream.

use prost::Message;
use weir_tables::discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource};
use weir_testkit::GrpcStream;

/// The stream of one proxy.
pub struct Ads {
    stream: GrpcStream,
}

impl Ads {
    /// The other end of this stream.
    pub fn new(stream: GrpcStream) -> Self {
        Self { stream }
    }

    /// The stream itself.
    pub fn stream(&self) -> &GrpcStream {
        &self.stream
    }

    /// What the proxy has sent since the last time.
    pub fn requests(&self) -> Vec<DeltaDiscoveryRequest> {
        let sent = self.stream.take_sent();
        sent.iter()
            .map(|sent| DeltaDiscoveryRequest::decode(sent.as_slice()).expect("a request"))
            .collect()
    }

    /// Sends resources of one type; returns the answer to them.
    pub fn push(&self, resources: &[Resource]) -> DeltaDiscoveryRequest {
        let any = resources.first().and_then(|first| first.resource.as_ref());
        self.send(DeltaDiscoveryResponse {
            type_url: any.expect("a resource").type_url.clone(),
            resources: resources.to_vec(),
            ..Default::default()
        })
    }

    /// Takes resources away; returns the answer.
    pub fn remove(&self, type_url: &str, names: &[&str]) -> DeltaDiscoveryRequest {
        self.send(DeltaDiscoveryResponse {
            type_url: type_url.into(),
            removed_resources: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Default::default()
        })
    }

    fn send(&self, mut response: DeltaDiscoveryResponse) -> DeltaDiscoveryRequest {
        self.stream.take_sent();
        response.nonce = "nonce-7".into();
        self.stream.send(response.encode_to_vec()).expect("no trap");
        let mut answers = self.requests();
        assert_eq!(answers.len(), 1, "a response gets one answer");
        let answer = answers.remove(0);
        assert_eq!(answer.response_nonce, "nonce-7");
        assert_eq!(answer.type_url, response.type_url);
        answer
    }

    /// Sends resources, which the proxy takes.
    pub fn accepts(&self, resources: &[Resource]) {
        assert_eq!(self.push(resources).error_detail, None);
    }

    /// Sends resources, which the proxy refuses; returns why.
    pub fn refuses(&self, resources: &[Resource]) -> String {
        let status = self.push(resources).error_detail.expect("a NACK");
        assert_eq!(status.code, 3, "INVALID_ARGUMENT");
        status.message
    }
}
