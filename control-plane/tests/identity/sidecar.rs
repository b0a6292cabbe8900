// SPDX-License-Identifier: Apache-2.0
//! What a sidecar says and is told, by a certificate.

use std::net::SocketAddr;

use discovery::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status, Streaming};

use crate::certificates::{Authority, Pair};
use crate::waits::within;

/// A connection that shows this certificate.
pub(crate) async fn connect(
    control: SocketAddr,
    authority: &Authority,
    shown: &Pair,
) -> Result<Channel, tonic::transport::Error> {
    let tls = ClientTlsConfig::new()
        .domain_name("weir-control")
        .ca_certificate(Certificate::from_pem(&authority.certificate))
        .identity(Identity::from_pem(&shown.certificate, &shown.key));
    let endpoint = Endpoint::from_shared(format!("https://{control}")).unwrap();
    endpoint.tls_config(tls).unwrap().connect().await
}

/// A discovery stream.
pub(crate) struct Tables {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

impl Tables {
    /// Asks for resources of one type; without names for all.
    pub(crate) async fn open(
        channel: Channel,
        proxy: &str,
        kind: &str,
        names: &[&str],
    ) -> Result<Self, Status> {
        let (requests, outbound) = mpsc::channel(4);
        let first = DeltaDiscoveryRequest {
            node: Some(Node {
                id: proxy.to_owned(),
                ..Default::default()
            }),
            type_url: kind.to_owned(),
            resource_names_subscribe: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Default::default()
        };
        requests.send(first).await.unwrap();
        let mut client = AggregatedDiscoveryServiceClient::new(channel);
        let outbound = Request::new(ReceiverStream::new(outbound));
        let responses = client.delta_aggregated_resources(outbound).await?;
        Ok(Self {
            requests,
            responses: responses.into_inner(),
        })
    }

    /// The next response, which is accepted.
    pub(crate) async fn next(&mut self) -> Result<DeltaDiscoveryResponse, Status> {
        let response = self.responses.message().await?;
        let response = response.ok_or_else(|| Status::ok("the stream has ended"))?;
        let answer = DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            ..Default::default()
        };
        let _ = self.requests.send(answer).await;
        Ok(response)
    }

    /// The status that it ends with, after responses that are accepted.
    pub(crate) async fn end(&mut self) -> Status {
        let ends = async {
            loop {
                if let Err(status) = self.next().await {
                    return status;
                }
            }
        };
        within("the end of its stream", ends).await
    }
}
