// SPDX-License-Identifier: Apache-2.0
//! The ext_proc service: request headers in, the destination header out.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use envoy_types::pb::envoy::config::core::v3::header_value_option::HeaderAppendAction;
use envoy_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption};
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::ExternalProcessor;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Asked;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response as Said;
use envoy_types::pb::envoy::service::ext_proc::v3::{
    CommonResponse, HeaderMutation, HeadersResponse, HttpHeaders, ProcessingRequest,
    ProcessingResponse,
};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};
use weir_policy::{KeyHash, Rank, USERS, user_priority};

use crate::knowledge::Knowledge;

const DESTINATION: &str = "x-gateway-destination-endpoint";

/// The filter's default priorities.
const HIGH: u8 = 0;
const LOW: u8 = 16;

pub(crate) struct Picker {
    knowledge: Arc<Mutex<Knowledge>>,
}

impl Picker {
    pub(crate) fn new(knowledge: Arc<Mutex<Knowledge>>) -> Self {
        Self { knowledge }
    }
}

#[tonic::async_trait]
impl ExternalProcessor for Picker {
    type ProcessStream = Pin<Box<dyn Stream<Item = Result<ProcessingResponse, Status>> + Send>>;

    async fn process(
        &self,
        request: Request<Streaming<ProcessingRequest>>,
    ) -> Result<Response<Self::ProcessStream>, Status> {
        let knowledge = Arc::clone(&self.knowledge);
        let answers = request.into_inner().map(move |message| {
            let Some(Asked::RequestHeaders(headers)) = message?.request else {
                return Err(Status::invalid_argument("only request headers are taken"));
            };
            Ok(answer(destination(&knowledge, &headers)?))
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

/// Reads what the filter reads.
fn destination(
    knowledge: &Mutex<Knowledge>,
    headers: &HttpHeaders,
) -> Result<Option<String>, Status> {
    let headers = headers.headers.as_ref().map(|map| map.headers.as_slice());
    let header = |name: &str| {
        let found = headers?.iter().find(|header| header.key == name)?;
        Some(match found.raw_value.is_empty() {
            true => found.value.as_bytes(),
            false => &found.raw_value,
        })
    };
    let key = header("x-weir-key").map(KeyHash::of);
    let class = match header("x-weir-priority") {
        Some(b"high") => HIGH,
        _ => LOW,
    };
    let user = match header("x-weir-user") {
        Some(user) => user_priority(user, hour()),
        None => rand::random_range(0..USERS as u8),
    };
    let mut knowledge = knowledge
        .lock()
        .map_err(|_| Status::internal("a decision panicked"))?;
    Ok(knowledge.destination(key, Rank::new(class, user)))
}

fn hour() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() / 3600)
}

fn answer(destination: Option<String>) -> ProcessingResponse {
    let set = destination.map(|destination| HeaderMutation {
        set_headers: vec![HeaderValueOption {
            header: Some(HeaderValue {
                key: DESTINATION.to_owned(),
                raw_value: destination.into_bytes(),
                ..Default::default()
            }),
            append_action: HeaderAppendAction::OverwriteIfExistsOrAdd.into(),
            ..Default::default()
        }],
        ..Default::default()
    });
    let common = CommonResponse {
        header_mutation: set,
        ..Default::default()
    };
    ProcessingResponse {
        response: Some(Said::RequestHeaders(HeadersResponse {
            response: Some(common),
        })),
        ..Default::default()
    }
}
