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
use weir_policy::{HostId, KeyHash, Rank, USERS, user_priority};

use crate::bench::picker::knowledge::{Choice, Knowledge};

const DESTINATION: &str = "x-gateway-destination-endpoint";

/// The filter's default priorities.
const HIGH: u8 = 0;
const LOW: u8 = 16;

pub(crate) struct Picker {
    knowledge: Arc<Mutex<Knowledge>>,
    told_of_answers: bool,
}

impl Picker {
    pub(crate) fn new(knowledge: Arc<Mutex<Knowledge>>, told_of_answers: bool) -> Self {
        Self {
            knowledge,
            told_of_answers,
        }
    }
}

/// One request, which has its own stream.
struct Exchange {
    knowledge: Arc<Mutex<Knowledge>>,
    told_of_answers: bool,
    /// Where it is in flight.
    host: Option<HostId>,
}

#[tonic::async_trait]
impl ExternalProcessor for Picker {
    type ProcessStream = Pin<Box<dyn Stream<Item = Result<ProcessingResponse, Status>> + Send>>;

    async fn process(
        &self,
        request: Request<Streaming<ProcessingRequest>>,
    ) -> Result<Response<Self::ProcessStream>, Status> {
        let mut exchange = Exchange {
            knowledge: Arc::clone(&self.knowledge),
            told_of_answers: self.told_of_answers,
            host: None,
        };
        let messages = request.into_inner();
        let answers = messages.map(move |message| exchange.answer(message?));
        Ok(Response::new(Box::pin(answers)))
    }
}

impl Exchange {
    fn answer(&mut self, message: ProcessingRequest) -> Result<ProcessingResponse, Status> {
        match message.request {
            Some(Asked::RequestHeaders(headers)) => {
                let choice = self.choose(&headers)?;
                self.host = choice.as_ref().map(|choice| choice.first);
                if !self.told_of_answers {
                    self.end();
                }
                Ok(named(choice.map(|choice| choice.destination)))
            }
            Some(Asked::ResponseHeaders(_)) => {
                self.end();
                Ok(ProcessingResponse {
                    response: Some(Said::ResponseHeaders(HeadersResponse::default())),
                    ..Default::default()
                })
            }
            _ => Err(Status::invalid_argument("only headers are taken")),
        }
    }

    /// Reads what the filter reads.
    fn choose(&self, headers: &HttpHeaders) -> Result<Option<Choice>, Status> {
        let headers = headers.headers.as_ref().map(|map| map.headers.as_slice());
        let header = |name: &str| {
            let found = headers?.iter().find(|header| header.key == name)?;
            Some(match found.raw_value.is_empty() {
                true => found.value.as_bytes(),
                false => &found.raw_value,
            })
        };
        let keys = header("x-weir-key").map(KeyHash::of).into();
        let class = match header("x-weir-priority") {
            Some(b"high") => HIGH,
            _ => LOW,
        };
        let user = match header("x-weir-user") {
            Some(user) => user_priority(user, hour()),
            None => rand::random_range(0..USERS as u8),
        };
        let mut knowledge = self
            .knowledge
            .lock()
            .map_err(|_| Status::internal("a decision panicked"))?;
        let rank = Rank::new(class, user);
        Ok(knowledge.choose(&weir_policy::Request { keys, rank }))
    }

    /// The request is in flight no more, as far as one is told.
    fn end(&mut self) {
        if let Some(host) = self.host.take()
            && let Ok(mut knowledge) = self.knowledge.lock()
        {
            knowledge.finished(host);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.end();
    }
}

fn hour() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() / 3600)
}

fn named(destination: Option<String>) -> ProcessingResponse {
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
