// SPDX-License-Identifier: Apache-2.0
//! SIMULATED: one request as its Envoy knows it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use weir_filter::headers::{Headers, serialize};
use weir_filter::host::{Failed, Map, Number, RequestHost, Response, Text};

/// The filter's word to Envoy.
const DESTINATION: &str = "x-gateway-destination-endpoint";

#[derive(Clone, Default)]
pub(crate) struct Request(Rc<Inner>);

#[derive(Default)]
struct Inner {
    request: RefCell<Vec<(String, String)>>,
    response: RefCell<Vec<(String, String)>>,
    upstream: RefCell<Option<String>>,
    flags: Cell<u64>,
    answered: Cell<bool>,
}

impl Request {
    pub(crate) fn new(priority: &str, user: &str, key: &str) -> Self {
        let request = Self::default();
        let headers = [
            (":method", "GET"),
            (":path", "/"),
            ("x-weir-priority", priority),
            ("x-weir-user", user),
            ("x-weir-key", key),
        ];
        let owned = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        request.0.request.replace(owned.to_vec());
        request
    }

    /// The hosts that the filter names, best first.
    pub(crate) fn destination(&self) -> Vec<String> {
        let headers = self.0.request.borrow();
        let named = headers.iter().find(|(name, _)| name == DESTINATION);
        let named = named.into_iter().flat_map(|(_, value)| value.split(','));
        named.map(str::to_owned).collect()
    }

    /// The filter has answered it itself.
    pub(crate) fn is_answered(&self) -> bool {
        self.0.answered.get()
    }

    /// Envoy has sent it to this host.
    pub(crate) fn sent_to(&self, address: &str) {
        self.0.upstream.replace(Some(address.to_owned()));
    }

    /// An answer, of the host or, with response flags, of Envoy.
    pub(crate) fn answer(&self, status: u32, load: Option<String>, flags: u64) {
        let load = load.map(|load| ("endpoint-load-metrics".to_owned(), load));
        let status = (":status".to_owned(), status.to_string());
        let headers = std::iter::once(status).chain(load);
        self.0.response.replace(headers.collect());
        self.0.flags.set(flags);
    }
}

impl RequestHost for Request {
    fn headers(&self, map: Map) -> Result<Headers, Failed> {
        Ok(Headers::new(serialize(&match map {
            Map::Request => self.0.request.borrow(),
            Map::Response => self.0.response.borrow(),
        })))
    }

    /// It has none.
    fn body(&self, _: usize, _: usize) -> Result<Vec<u8>, Failed> {
        Ok(Vec::new())
    }

    fn set_header(&self, map: Map, name: &str, value: Option<&str>) -> Result<(), Failed> {
        let mut headers = match map {
            Map::Request => self.0.request.borrow_mut(),
            Map::Response => self.0.response.borrow_mut(),
        };
        headers.retain(|(known, _)| known != name);
        headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        Ok(())
    }

    fn text<T>(&self, text: Text, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let upstream = self.0.upstream.borrow();
        let value = match text {
            Text::Cluster => Some("rules"),
            Text::Caller => Some("127.0.0.1:50000"),
            Text::CallerUri => None,
            Text::Upstream => upstream.as_deref(),
        };
        value.map(|value| read(value.as_bytes()))
    }

    fn number(&self, number: Number) -> Option<u64> {
        match number {
            Number::MutualTls => None,
            Number::Attempts => self.0.upstream.borrow().as_ref().map(|_| 1),
            Number::ResponseFlags => Some(self.0.flags.get()),
        }
    }

    fn set_filter_state(&self, _name: &str, _value: &str) {}

    fn respond(&self, _response: &Response) -> Result<(), Failed> {
        self.0.answered.set(true);
        Ok(())
    }

    fn resume(&self) -> Result<(), Failed> {
        Ok(())
    }
}
