// SPDX-License-Identifier: Apache-2.0
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::destination;
use crate::headers::{Headers, serialize};
use crate::host::{Failed, Map, Number, RequestHost, Response, Text};

/// One request as the proxy knows it: of a caller on the loopback address, for the cluster `rules`.
#[derive(Clone)]
pub(crate) struct FakeRequest(Rc<RefCell<State>>);

struct State {
    request: Vec<(String, String)>,
    body: Vec<u8>,
    response: Vec<(String, String)>,
    texts: BTreeMap<Text, String>,
    numbers: BTreeMap<Number, u64>,
    reason: Option<String>,
    answers: Vec<Response>,
    resumed: usize,
    /// The headers that cannot be changed any more; an empty name stands for all, and for answers.
    deaf_to: Option<&'static str>,
    /// What the proxy does within `respond` and `resume`.
    call_back: Option<Box<dyn FnMut()>>,
}

impl FakeRequest {
    pub(crate) fn new(headers: &[(&str, &str)]) -> Self {
        Self::with_method("GET", headers)
    }

    pub(crate) fn with_method(method: &str, headers: &[(&str, &str)]) -> Self {
        let own = [(":method", method), (":path", "/")];
        let caller = (Text::Caller, "127.0.0.1:50000".into());
        Self(Rc::new(RefCell::new(State {
            request: own.iter().chain(headers).map(owned).collect(),
            body: Vec::new(),
            response: Vec::new(),
            texts: BTreeMap::from([(Text::Cluster, "rules".into()), caller]),
            numbers: BTreeMap::new(),
            reason: None,
            answers: Vec::new(),
            resumed: 0,
            deaf_to: None,
            call_back: None,
        })))
    }

    /// The answer of the host at `address`, at the first attempt.
    pub(crate) fn answer(&self, address: &str, headers: &[(&str, &str)]) {
        self.set(Text::Upstream, address);
        self.set_number(Number::Attempts, 1);
        self.0.borrow_mut().response = headers.iter().map(owned).collect();
    }

    /// More of the body comes, and stays as long as it is held.
    pub(crate) fn add_body(&self, part: &[u8]) {
        self.0.borrow_mut().body.extend(part);
    }

    pub(crate) fn set(&self, text: Text, value: &str) {
        self.0.borrow_mut().texts.insert(text, value.into());
    }

    pub(crate) fn set_number(&self, number: Number, value: u64) {
        self.0.borrow_mut().numbers.insert(number, value);
    }

    /// Nothing can be changed of it any more.
    pub(crate) fn deafen(&self) {
        self.deafen_to("");
    }

    /// This header cannot be changed any more.
    pub(crate) fn deafen_to(&self, name: &'static str) {
        self.0.borrow_mut().deaf_to = Some(name);
    }

    /// The proxy calls this back once, from within the next `respond` or `resume`.
    pub(crate) fn call_back(&self, call_back: impl FnMut() + 'static) {
        self.0.borrow_mut().call_back = Some(Box::new(call_back));
    }

    pub(crate) fn header(&self, map: Map, name: &str) -> Option<String> {
        let state = self.0.borrow();
        let headers = match map {
            Map::Request => &state.request,
            Map::Response => &state.response,
        };
        let header = headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| value.clone())
    }

    pub(crate) fn destination(&self) -> Option<String> {
        self.header(Map::Request, destination::HEADER)
    }

    /// The reason, as access logs see it.
    pub(crate) fn reason(&self) -> String {
        self.0.borrow().reason.clone().unwrap_or_default()
    }

    /// The answers that the filter gave itself.
    pub(crate) fn answers(&self) -> Vec<Response> {
        self.0.borrow().answers.clone()
    }

    pub(crate) fn resumed(&self) -> usize {
        self.0.borrow().resumed
    }

    fn run_call_back(&self) {
        let call_back = self.0.borrow_mut().call_back.take();
        if let Some(mut call_back) = call_back {
            call_back();
        }
    }

    fn heard(&self, name: &str) -> Result<(), Failed> {
        let deaf_to = self.0.borrow().deaf_to;
        match deaf_to.is_some_and(|deaf_to| deaf_to.is_empty() || deaf_to == name) {
            true => Err(Failed(2)),
            false => Ok(()),
        }
    }
}

fn owned((name, value): &(&str, &str)) -> (String, String) {
    ((*name).into(), (*value).into())
}

impl RequestHost for FakeRequest {
    fn headers(&self, map: Map) -> Result<Headers, Failed> {
        let state = self.0.borrow();
        Ok(Headers::new(serialize(match map {
            Map::Request => &state.request,
            Map::Response => &state.response,
        })))
    }

    fn body(&self, from: usize, most: usize) -> Result<Vec<u8>, Failed> {
        let body = self.0.borrow();
        Ok(body.body.iter().skip(from).take(most).copied().collect())
    }

    fn set_header(&self, map: Map, name: &str, value: Option<&str>) -> Result<(), Failed> {
        self.heard(name)?;
        let mut state = self.0.borrow_mut();
        let headers = match map {
            Map::Request => &mut state.request,
            Map::Response => &mut state.response,
        };
        headers.retain(|(known, _)| known != name);
        headers.extend(value.map(|value| owned(&(name, value))));
        Ok(())
    }

    fn text<T>(&self, text: Text, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let value = self.0.borrow().texts.get(&text).cloned();
        value.map(|value| read(value.as_bytes()))
    }

    fn number(&self, number: Number) -> Option<u64> {
        self.0.borrow().numbers.get(&number).copied()
    }

    fn set_filter_state(&self, name: &str, value: &str) {
        assert_eq!(name, "weir_reason");
        self.0.borrow_mut().reason = Some(value.into());
    }

    fn respond(&self, response: &Response) -> Result<(), Failed> {
        self.heard("")?;
        self.0.borrow_mut().answers.push(response.clone());
        self.run_call_back();
        Ok(())
    }

    fn resume(&self) -> Result<(), Failed> {
        self.0.borrow_mut().resumed += 1;
        self.run_call_back();
        Ok(())
    }
}
