// SPDX-License-Identifier: Apache-2.0
//! What weir-control sends.

use prost::Message;
use weir_tables::discovery::{Any, DeltaDiscoveryResponse, Resource};

/// A message of the stream.
pub(crate) fn response(type_url: &str, name: &str, version: u64, value: Vec<u8>) -> Vec<u8> {
    let type_url = type_url.to_owned();
    let resource = Resource {
        version: format!("1.{version}"),
        name: name.into(),
        resource: Some(Any {
            type_url: type_url.clone(),
            value,
        }),
    };
    let response = DeltaDiscoveryResponse {
        type_url,
        resources: vec![resource],
        nonce: version.to_string(),
        ..Default::default()
    }
    .encode_to_vec();
    let length = (response.len() as u32).to_be_bytes();
    [&[0][..], &length, &response].concat()
}
