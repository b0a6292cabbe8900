// SPDX-License-Identifier: Apache-2.0
//! A sidecar: the testkit's Envoy with one VM of the built filter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use prost::Message;
use weir_executor::JobId;
use weir_harness::{Chosen, Proxy};
use weir_tables::v1;
use weir_testkit::{Action, GrpcStream, HttpStream};

use crate::control::CLUSTER;

/// What its VM does with a stream.
pub(crate) enum Call {
    Open { stream: u32, method: String },
    Send { stream: u32, message: Vec<u8> },
    Cancel { stream: u32 },
}

pub(crate) struct Sidecar {
    proxy: Proxy,
    /// What its clock shows when time begins.
    origin: Duration,
    streams: BTreeSet<u32>,
    /// Requests without an answer, by host.
    open: BTreeMap<(usize, JobId), HttpStream>,
}

impl Sidecar {
    /// It starts `phase` after time begins.
    pub(crate) fn new(number: usize, seed: u64, phase: Duration) -> Self {
        let host = weir_testkit::Host::with_seed(seed << 32 | number as u64);
        let origin = host.clock().monotonic();
        host.clock().advance(phase);
        let configuration =
            format!(r#"{{"clusters":{{"{CLUSTER}":{{}}}},"proxy":"sidecar-{number}"}}"#);
        Self {
            proxy: Proxy::on(host, 1, &configuration),
            origin,
            streams: BTreeSet::new(),
            open: BTreeMap::new(),
        }
    }

    /// Its timers fire until then.
    pub(crate) fn run_until(&self, now: Duration) {
        let there = self.proxy.host.clock().monotonic();
        self.proxy.run((self.origin + now).saturating_sub(there));
        // Nobody reads them, and they would be kept.
        self.proxy.worker().take_logs();
    }

    /// The address that the filter sends a request for the key to.
    pub(crate) fn ask(&self, key: &str) -> (String, HttpStream) {
        let request = weir_harness::ask(self.proxy.worker(), key);
        assert_eq!(request.action(), Action::Continue, "held, shed or failed");
        (request.first(), request)
    }

    pub(crate) fn sent(&mut self, host: usize, job: JobId, request: HttpStream) {
        let before = self.open.insert((host, job), request);
        assert!(before.is_none(), "a job is one request's");
    }

    /// The host answers, where the request is of this sidecar.
    pub(crate) fn answered(&mut self, job: (usize, JobId), address: &str, load: &str) {
        let request = self.open.remove(&job).expect("it has no answer yet");
        let headers = [(":status", "200"), ("endpoint-load-metrics", load)];
        request.answer(address, &headers);
        request.finish().expect("no trap");
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    fn grpc_streams(&self) -> Vec<GrpcStream> {
        self.proxy.worker().grpc_streams()
    }

    fn stream(&self, token: u32) -> Option<GrpcStream> {
        let mut streams = self.grpc_streams().into_iter();
        streams.find(|stream| stream.token() == token)
    }

    /// What it has just done with streams.
    pub(crate) fn take_calls(&mut self) -> Vec<Call> {
        let open = self.grpc_streams();
        let is_gone = |stream: &u32| !open.iter().any(|open| open.token() == *stream);
        let gone = self.streams.extract_if(.., |stream| is_gone(stream));
        let mut calls: Vec<Call> = gone.map(|stream| Call::Cancel { stream }).collect();
        for stream in open {
            let (token, sent) = (stream.token(), stream.take_sent());
            if self.streams.insert(token) {
                let method = stream.request().method.clone();
                let stream = token;
                calls.push(Call::Open { stream, method });
            }
            let stream = token;
            let send = |message| Call::Send { stream, message };
            calls.extend(sent.into_iter().map(send));
        }
        calls
    }

    /// A stream brings a message, if it is still there.
    pub(crate) fn hear(&self, stream: u32, message: &[u8]) {
        if let Some(stream) = self.stream(stream) {
            stream.send(message).expect("no trap");
        }
    }

    /// A stream ends.
    pub(crate) fn close(&mut self, stream: u32, status: u32) {
        self.streams.remove(&stream);
        if let Some(stream) = self.stream(stream) {
            stream.close(status, "").expect("no trap");
        }
    }

    /// The table that it chooses by.
    pub(crate) fn table(&self) -> Option<v1::HostTable> {
        let bytes = self.proxy.shared(&format!("table/{CLUSTER}"))?;
        v1::HostTable::decode(bytes.get(8..)?).ok()
    }

    /// What its VM says it has in flight.
    pub(crate) fn in_flight(&self, host: &str) -> u32 {
        self.proxy.in_flight(host)
    }
}
