// SPDX-License-Identifier: Apache-2.0
//! A proxy for unit tests: shared data, clock, metrics, log and streams ([`FakeHost`]), requests with their headers
//! ([`FakeRequest`]), and a VM with a root context in it ([`Worker`]).

mod request;
mod shared_data;
mod tables;
mod worker;

pub(crate) use request::FakeRequest;
pub(crate) use shared_data::SharedData;
pub(crate) use tables::{hedging, holding};
pub(crate) use worker::{CONTROL, RULES, Worker, counted, shed_of};

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use prost::Message;

use crate::contents::Contents;
use crate::host::{Change, Failed, Host, LogLevel, MetricType};

/// What all VMs of the proxy share; cache contents too, of one that is [`FakeHost::sharing`] them.
#[derive(Clone, Default)]
pub(crate) struct FakeHost(Rc<RefCell<Proxy>>, Option<Rc<Contents>>);

#[derive(Default)]
struct Proxy {
    now: Duration,
    random: u64,
    log: Vec<String>,
    shared: SharedData,
    /// Another VM's writes, each made just before the next one of the filter that is compared.
    races: Vec<(String, Vec<u8>)>,
    /// By number: name and value.
    metrics: Vec<(String, i64)>,
    streams: Vec<FakeStream>,
    has_no_upstream: bool,
    opens_no_streams: bool,
}

/// A stream that the filter has opened. Its number is its place among all of them.
#[derive(Clone, Debug)]
pub(crate) struct FakeStream {
    pub(crate) cluster: String,
    pub(crate) method: String,
    pub(crate) metadata: (String, Vec<u8>),
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) is_cancelled: bool,
}

impl FakeHost {
    /// A proxy whose VMs can hand each other what they have decoded.
    pub(crate) fn sharing() -> Self {
        Self(Rc::default(), Some(Rc::default()))
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.0.borrow_mut().now += time;
    }

    /// The log's lines since the last time.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.0.borrow_mut().log)
    }

    /// A metric's value, by its name and label: `name{label=value}`.
    pub(crate) fn metric(&self, name: &str) -> i64 {
        let proxy = self.0.borrow();
        let metric = proxy.metrics.iter().find(|(known, _)| known == name);
        metric.unwrap_or_else(|| panic!("no metric {name}")).1
    }

    /// From now on no stream can be opened, or can again.
    pub(crate) fn set_upstream(&self, is_there: bool) {
        self.0.borrow_mut().has_no_upstream = !is_there;
    }

    /// Whether VMs that are configured from now on can open streams.
    pub(crate) fn set_opens_streams(&self, can: bool) {
        self.0.borrow_mut().opens_no_streams = !can;
    }

    /// Before the next write by compare-and-swap another VM writes this.
    pub(crate) fn race(&self, key: &str, value: &[u8]) {
        let race = (key.to_owned(), value.to_vec());
        self.0.borrow_mut().races.push(race);
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.0.borrow().shared.keys().cloned().collect()
    }

    /// All streams that were ever opened.
    pub(crate) fn streams(&self) -> Vec<FakeStream> {
        self.0.borrow().streams.clone()
    }

    /// The open stream of a method, if there is one.
    pub(crate) fn stream(&self, method: &str) -> Option<u32> {
        let streams = self.streams();
        let open = |stream: &FakeStream| stream.method == method && !stream.is_cancelled;
        streams.iter().rposition(open).map(|at| at as u32)
    }

    /// What came through a stream since the last time.
    pub(crate) fn take_sent<M: Message + Default>(&self, stream: u32) -> Vec<M> {
        let sent = std::mem::take(&mut self.0.borrow_mut().streams[stream as usize].sent);
        let sent = sent.iter().map(|sent| M::decode(sent.as_slice()).unwrap());
        sent.collect()
    }
}

impl Host for FakeHost {
    type Value = Vec<u8>;

    fn log(&self, _level: LogLevel, message: &str) {
        self.0.borrow_mut().log.push(message.into());
    }

    fn now(&self) -> Duration {
        self.0.borrow().now
    }

    fn hour(&self) -> u64 {
        500_000
    }

    fn zone(&self) -> String {
        "near".into()
    }

    fn random(&self) -> u64 {
        let mut proxy = self.0.borrow_mut();
        proxy.random = proxy.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        proxy.random
    }

    fn shared(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.0.borrow().shared.get(key)
    }

    fn contents(&self) -> Option<&Contents> {
        self.1.as_deref()
    }

    fn set_shared(&self, key: &str, value: &[u8], cas: Option<u32>) -> Result<bool, Failed> {
        let mut proxy = self.0.borrow_mut();
        if cas.is_some()
            && let Some((key, value)) = proxy.races.pop()
        {
            proxy.shared.set(&key, &value, None);
        }
        Ok(proxy.shared.set(key, value, cas))
    }

    fn define_metric(
        &self,
        _metric_type: MetricType,
        name: &str,
        label: Option<(&str, &str)>,
    ) -> Option<u32> {
        let name = match label {
            Some((label, value)) => format!("{name}{{{label}={value}}}"),
            None => name.to_owned(),
        };
        let metrics = &mut self.0.borrow_mut().metrics;
        let known = metrics.iter().position(|(known, _)| *known == name);
        let at = known.unwrap_or(metrics.len());
        if known.is_none() {
            metrics.push((name, 0));
        }
        Some(at as u32)
    }

    fn change_metric(&self, id: u32, change: Change) {
        let value = &mut self.0.borrow_mut().metrics[id as usize].1;
        match change {
            Change::By(offset) => *value += offset,
            Change::To(new) => *value = new as i64,
        }
    }

    fn metric(&self, id: u32) -> Option<u64> {
        let proxy = self.0.borrow();
        let (_, value) = proxy.metrics.get(id as usize)?;
        Some(*value as u64)
    }

    fn opens_streams(&self) -> bool {
        !self.0.borrow().opens_no_streams
    }

    fn open_stream(
        &self,
        cluster: &str,
        (_, method): (&str, &str),
        (name, value): (&str, &[u8]),
    ) -> Result<u32, Failed> {
        let mut proxy = self.0.borrow_mut();
        if proxy.has_no_upstream {
            return Err(Failed(10));
        }
        proxy.streams.push(FakeStream {
            cluster: cluster.into(),
            method: method.into(),
            metadata: (name.into(), value.to_vec()),
            sent: Vec::new(),
            is_cancelled: false,
        });
        Ok(proxy.streams.len() as u32 - 1)
    }

    fn send_message(&self, stream: u32, message: &[u8]) -> Result<(), Failed> {
        let stream = &mut self.0.borrow_mut().streams[stream as usize];
        assert!(!stream.is_cancelled, "nothing is sent after the end");
        stream.sent.push(message.to_vec());
        Ok(())
    }

    fn cancel_stream(&self, stream: u32) {
        let stream = &mut self.0.borrow_mut().streams[stream as usize];
        assert!(!stream.is_cancelled, "it is cancelled once");
        stream.is_cancelled = true;
    }
}
