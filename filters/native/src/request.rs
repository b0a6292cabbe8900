// SPDX-License-Identifier: Apache-2.0
//! A request in Envoy, until it is destroyed there.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use weir_filter::destination;
use weir_filter::headers::Headers;
use weir_filter::host::{Destination, Failed, HostState, Map, Number, RequestHost, Response, Text};

use crate::abi::{Filter, attribute};
use crate::trailers_only;
use crate::worker::Request;

const GONE: Failed = Failed(1);

/// The way to a request; every copy knows when Envoy has destroyed it.
#[derive(Clone)]
pub(crate) struct InEnvoy(Rc<Known>);

struct Known {
    filter: Cell<Option<Filter>>,
    /// A host may be named in the header, by the caller or by this.
    has_destination: Cell<bool>,
    /// The filter has answered it.
    is_answered: Cell<bool>,
    /// What an answer of the filter's own says, before Envoy has it.
    answer: RefCell<Option<Vec<(String, String)>>>,
    request: Weak<Request>,
}

impl InEnvoy {
    pub(crate) fn new(filter: Filter, request: Weak<Request>) -> Self {
        Self(Rc::new(Known {
            filter: Cell::new(Some(filter)),
            has_destination: Cell::new(true),
            is_answered: Cell::new(false),
            answer: RefCell::default(),
            request,
        }))
    }

    pub(crate) fn filter(&self) -> Option<Filter> {
        self.0.filter.get()
    }

    /// Envoy has destroyed it.
    pub(crate) fn is_destroyed(&self) {
        self.0.filter.set(None);
    }

    /// Whether the filter has answered it.
    pub(crate) fn is_answered(&self) -> bool {
        self.0.is_answered.get()
    }

    fn is_grpc(&self) -> bool {
        let headers = self.headers(Map::Request);
        headers.is_ok_and(|headers| {
            headers
                .get("content-type")
                .is_some_and(trailers_only::is_grpc)
        })
    }

    /// Sets a header of an answer that Envoy does not have yet; says whether there is one.
    fn set_in_answer(&self, name: &str, value: Option<&str>) -> bool {
        let mut answer = self.0.answer.borrow_mut();
        let Some(headers) = &mut *answer else {
            return false;
        };
        headers.retain(|(known, _)| known != name);
        headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        true
    }
}

impl RequestHost for InEnvoy {
    fn headers(&self, map: Map) -> Result<Headers, Failed> {
        let headers = self.filter().and_then(|filter| filter.headers(map as u32));
        let headers = headers.map(Headers::new).ok_or(GONE)?;
        if map == Map::Request {
            // Also an empty one, and what comes after it.
            let name = destination::HEADER.as_bytes();
            let has_destination = headers.iter().any(|(known, _)| known == name);
            self.0.has_destination.set(has_destination);
        }
        Ok(headers)
    }

    fn body(&self, from: usize, most: usize) -> Result<Vec<u8>, Failed> {
        Ok(self.filter().ok_or(GONE)?.body(from, most))
    }

    /// One host by a call, which Envoy does more cheaply, unless it would pass by one that is not up; several, of which
    /// retries go to the next, as in the other shell.
    fn send_to(&self, to: Option<Destination<'_>>) -> Result<(), Failed> {
        let filter = self.filter().ok_or(GONE)?;
        let is_one = |to: &Destination<'_>| to.state == HostState::Up && !to.hosts.contains(',');
        let is_told = to.filter(is_one).is_some_and(|to| filter.send_to(to.hosts));
        let header = to.map(|to| to.hosts).filter(|_| !is_told);
        if header.is_none() && !self.0.has_destination.get() {
            return Ok(());
        }
        self.0.has_destination.set(header.is_some());
        self.set_header(Map::Request, destination::HEADER, header)
    }

    fn set_header(&self, map: Map, name: &str, value: Option<&str>) -> Result<(), Failed> {
        let filter = self.filter().ok_or(GONE)?;
        if map == Map::Response && self.set_in_answer(name, value) {
            return Ok(());
        }
        let is_set = filter.set_header(map as u32, name, value);
        is_set.then_some(()).ok_or(GONE)
    }

    fn text<T>(&self, text: Text, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let value = self.filter()?.text(match text {
            Text::Cluster => attribute::CLUSTER_NAME,
            Text::Caller => attribute::SOURCE_ADDRESS,
            Text::CallerUri => attribute::URI_SAN_PEER_CERTIFICATE,
            Text::Upstream => attribute::UPSTREAM_ADDRESS,
        })?;
        Some(read(&value))
    }

    fn number(&self, number: Number) -> Option<u64> {
        let filter = self.filter()?;
        match number {
            Number::MutualTls => filter.is(attribute::CONNECTION_MTLS).map(u64::from),
            Number::Attempts => filter.number(attribute::REQUEST_ATTEMPT_COUNT),
            Number::ResponseFlags => filter.number(attribute::RESPONSE_FLAGS),
        }
    }

    /// By the name that it has in the other shell, so that access logs are the same.
    fn set_filter_state(&self, name: &str, value: &str) {
        if let Some(filter) = self.filter() {
            filter.set_filter_state(&["wasm.", name].concat(), value);
        }
    }

    /// Envoy calls no hook of an answer that a filter gives itself, as the other shell's does: so it is done here.
    fn respond(&self, response: &Response) -> Result<(), Failed> {
        let headers = response.headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), value.clone()));
        self.0.answer.replace(Some(headers.collect()));
        if let Some(request) = self.0.request.upgrade() {
            request.on_response();
        }
        let headers = self.0.answer.take().unwrap_or_default();
        let filter = self.filter().ok_or(GONE)?;
        self.0.is_answered.set(true);
        match self.is_grpc() {
            // Envoy's own way to answer gives callers by gRPC the status 0, which is success.
            true => filter.respond_as_it_is(&trailers_only::of(response, headers)),
            false => filter.respond(response.status, &headers, &response.body, response.details),
        }
        Ok(())
    }

    fn resume(&self) -> Result<(), Failed> {
        self.filter().ok_or(GONE)?.resume();
        Ok(())
    }
}
