// SPDX-License-Identifier: Apache-2.0
//! What the filter needs of the proxy that it runs in, as a VM ([`Host`]) and for one request ([`RequestHost`]).
//!
//! `adapter.rs` carries it over to proxy-wasm; tests play it. An implementation may call the filter back from
//! within [`RequestHost::respond`] and [`RequestHost::resume`] alone: the filter makes these two calls while it
//! borrows nothing. Events of streams, those of a stream that cannot be opened too, come after the call.

use std::ops::Deref;
use std::time::Duration;

pub use weir_policy::HostState;

use crate::contents::Contents;
use crate::destination;
use crate::headers::Headers;

/// The host's status code for a call that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed(pub u32);

/// How important a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Something that an operator should see to.
    Warn = 3,
    /// Something that does not work.
    Error = 4,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// It only rises.
    Counter = 0,
    /// It is the sum over the proxy's VMs, or what one of them has set last.
    Gauge = 1,
}

/// A change of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// By so much.
    By(i64),
    /// To this value, which is a gauge's.
    To(u64),
}

/// What a VM needs. All VMs of a proxy share the clock, shared data and metrics.
pub trait Host: Clone {
    /// A value of shared data as it is read.
    type Value: Deref<Target = [u8]>;

    /// Writes a line of the proxy's log.
    fn log(&self, level: LogLevel, message: &str);

    /// Time since an origin that all VMs of the proxy share.
    fn now(&self) -> Duration;

    /// Hours since the Unix epoch.
    fn hour(&self) -> u64;

    /// The zone that the proxy was told it is in; empty where it was told none.
    fn zone(&self) -> String;

    /// A uniform number, unlike those of other VMs.
    fn random(&self) -> u64;

    /// A value of shared data and its compare-and-swap number; none where the key was never written.
    fn shared(&self, key: &str) -> Option<(Self::Value, u32)>;

    /// Writes the key: whatever it holds, or only where nobody has written since `cas` was read. A key that was never
    /// written is, whatever the `cas`. Says whether it did.
    fn set_shared(&self, key: &str, value: &[u8], cas: Option<u32>) -> Result<bool, Failed>;

    /// Where VMs can hand each other what they have decoded, the cache contents of all of them; none where they share
    /// bytes alone.
    fn contents(&self) -> Option<&Contents> {
        None
    }

    /// Makes a metric known, or finds it; of a label (name, value) each value is a metric of its own.
    fn define_metric(
        &self,
        metric_type: MetricType,
        name: &str,
        label: Option<(&str, &str)>,
    ) -> Option<u32>;

    /// Changes a metric.
    fn change_metric(&self, id: u32, change: Change);

    /// The value of a counter or gauge.
    fn metric(&self, id: u32) -> Option<u64>;

    /// Whether this VM can open streams; all can where nothing is said.
    fn opens_streams(&self) -> bool {
        true
    }

    /// Opens a bidirectional gRPC stream (service, method) to an Envoy cluster, with metadata.
    fn open_stream(
        &self,
        cluster: &str,
        method: (&str, &str),
        metadata: (&str, &[u8]),
    ) -> Result<u32, Failed>;

    /// Sends a message through an open stream.
    fn send_message(&self, stream: u32, message: &[u8]) -> Result<(), Failed>;

    /// Ends a stream here; nothing comes through it any more.
    fn cancel_stream(&self, stream: u32);
}

/// Header maps of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// As the caller has sent them.
    Request = 0,
    /// As the host has answered, or the proxy itself.
    Response = 2,
}

/// A text that the proxy knows of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Text {
    /// Envoy's name of the cluster that the route chose.
    Cluster,
    /// The caller's address and port.
    Caller,
    /// The URI in the certificate that the caller showed.
    CallerUri,
    /// The address and port of the last host that the request was sent to.
    Upstream,
}

/// A number that the proxy knows of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Number {
    /// 1 where the caller showed a certificate.
    MutualTls,
    /// Attempts at a host so far.
    Attempts,
    /// Envoy's response flags, one bit each.
    ResponseFlags,
}

/// An answer that the filter gives itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u32,
    /// Of a gRPC request.
    pub grpc_status: i32,
    /// Response code details, for access logs.
    pub details: &'static str,
    /// Names and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination<'a> {
    /// The addresses of hosts, best first, with commas between them.
    pub hosts: &'a str,
    /// The first one's, as the table has it.
    pub state: HostState,
}

/// What one request needs.
pub trait RequestHost {
    /// The whole map.
    fn headers(&self, map: Map) -> Result<Headers, Failed>;

    /// At most so many bytes of the body from there on, as far as it has come and is held.
    fn body(&self, from: usize, most: usize) -> Result<Vec<u8>, Failed>;

    /// Tells the proxy where the request goes, or leaves that to the proxy, whatever the caller has asked for.
    fn send_to(&self, to: Option<Destination<'_>>) -> Result<(), Failed> {
        self.set_header(Map::Request, destination::HEADER, to.map(|to| to.hosts))
    }

    /// Sets a header to one value, or removes it.
    fn set_header(&self, map: Map, name: &str, value: Option<&str>) -> Result<(), Failed>;

    /// Reads a text; none where there is none.
    fn text<T>(&self, text: Text, read: impl FnOnce(&[u8]) -> T) -> Option<T>;

    /// A number; none where there is none.
    fn number(&self, number: Number) -> Option<u64>;

    /// Puts a value into the request's filter state, for access logs: none is lost that matters.
    fn set_filter_state(&self, name: &str, value: &str);

    /// Answers the request here.
    fn respond(&self, response: &Response) -> Result<(), Failed>;

    /// Lets a request go on that was held at its headers.
    fn resume(&self) -> Result<(), Failed>;
}
