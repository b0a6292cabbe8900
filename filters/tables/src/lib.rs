// SPDX-License-Identifier: Apache-2.0
//! The weir.v1 tables and reports: encoding, decoding and validation.

/// Generated from `proto/weir/v1`.
#[allow(missing_docs, clippy::all)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/weir.v1.rs"));
}

/// Generated from `proto/envoy/service/discovery/v3`: the part of delta xDS that the filter speaks.
#[allow(missing_docs, clippy::all)]
pub mod discovery {
    include!(concat!(env!("OUT_DIR"), "/envoy.service.discovery.v3.rs"));
}
