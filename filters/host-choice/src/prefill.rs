// SPDX-License-Identifier: Apache-2.0
//! A second choice: the host that reads a prompt for the one that writes the answer.
//!
//! ```text
//!  host that writes ── it lacks more than `above_bytes`? ─┬─ no ──> it reads the rest itself
//!                                                         └─ yes ── the other table decides by the same keys ─┬─ nobody: as above
//!                     in flight there until the answer begins <── the header names it <───────────────────────┘
//! ```
//! The header is llm-d's: its sidecar beside an engine that writes has the host in `x-prefiller-host-port` read the prompt
//! first, and the engine gets the KV cache from there (llm-d-inference-scheduler, docs/disaggregation.md).

use std::rc::Rc;
use std::time::Duration;

use weir_policy::{HostId, Ranked};

use crate::abandoned::{Abandoned, AbandonedQueue};
use crate::config::Prefill;
use crate::host::{Host, Map, RequestHost};
use crate::in_flight::RouteRequest;
use crate::metrics::PrefillEnd;
use crate::vm::Vm;

/// A prompt at the host that reads it for another. It counts there in the VM that sent it ([`Vm::prefill`]) until that VM
/// ends it ([`Vm::end_prefill`]); one that is dropped before is taken back.
pub(crate) struct Prefilling {
    table: Rc<str>,
    sent: (HostId, Duration),
    abandoned: AbandonedQueue,
    is_over: bool,
}

impl Prefilling {
    /// One that the VM has counted.
    pub(crate) fn new(
        table: &Rc<str>,
        sent: (HostId, Duration),
        abandoned: AbandonedQueue,
    ) -> Box<Self> {
        Box::new(Self {
            table: Rc::clone(table),
            sent,
            abandoned,
            is_over: false,
        })
    }

    /// The VM does not count it any more: where it was, and since when.
    pub(crate) fn disarm(mut self) -> (Rc<str>, (HostId, Duration)) {
        self.is_over = true;
        (Rc::clone(&self.table), self.sent)
    }
}

impl Drop for Prefilling {
    fn drop(&mut self) {
        if !self.is_over {
            let (host, at) = self.sent;
            self.abandoned.push(Abandoned::InFlight {
                table: Rc::clone(&self.table),
                host,
                at,
                second: None,
                tries: None,
            });
        }
    }
}

/// Removes what a caller says of it, be it trusted or not: hosts send requests there.
#[inline(never)]
pub(crate) fn remove(prefill: &Prefill, host: &impl RequestHost) {
    let _ = host.set_header(Map::Request, &prefill.header, None);
}

/// Names the host that reads a prompt for the first of `writers`; none where that one reads it itself.
#[inline(never)]
pub(crate) fn name<H: Host>(
    vm: &mut Vm<H>,
    host: &impl RequestHost,
    (route, prefill): (&RouteRequest, &Prefill),
    writers: &Ranked,
    now: Duration,
) -> Option<Box<Prefilling>> {
    let chosen = vm.reader(route, prefill, writers, now);
    let named = chosen.and_then(|reader| {
        let address = vm.address(&prefill.table, reader);
        let address = address.ok_or(PrefillEnd::NoHost)?;
        match host.set_header(Map::Request, &prefill.header, Some(address)) {
            Ok(()) => Ok(reader),
            Err(_) => Err(PrefillEnd::NoHost),
        }
    });
    let end = named.err().unwrap_or(PrefillEnd::Named);
    vm.metrics.prefill(&vm.host, end);
    Some(vm.prefill(prefill, named.ok()?, &route.request, now))
}

#[cfg(test)]
mod tests {
    use weir_harness::{A, B, table, up};
    use weir_tables::v1;

    use super::*;
    use crate::disposition::Flow;
    use crate::exchange::Exchange;
    use crate::fake::{FakeHost, FakeRequest, Worker, holding};

    const PREFILL: &str = r#"{"clusters":{"rules":{
        "key":{"prompt":{"block_bytes":64}},"prefill":{"table":"readers","above_bytes":"0KiB"}}}}"#;

    /// B reads for hosts with this table.
    fn worker(writers: &v1::HostTable) -> Worker {
        let mut worker = Worker::of(&FakeHost::default(), PREFILL);
        worker.tick(50);
        worker.push(writers);
        let mut readers = table(1, up(&[B]));
        readers.cluster = "readers".into();
        worker.push(&readers);
        worker
    }

    fn new() -> FakeRequest {
        FakeRequest::with_method("POST", &[("content-type", "application/json")])
    }

    /// Asks for an answer to a prompt of a block.
    fn ask(worker: &mut Worker, request: &FakeRequest) -> (Exchange<FakeHost>, Flow) {
        worker.contexts.insert(7, request.clone());
        let mut exchange = worker.root.exchange(7);
        assert_eq!(exchange.on_request(request, false), Flow::Hold);
        request.add_body(format!(r#"{{"prompt":"{}"}}"#, "a".repeat(64)).as_bytes());
        let flow = exchange.on_body(request, true);
        (exchange, flow)
    }

    fn reader(request: &FakeRequest) -> Option<String> {
        request.header(Map::Request, "x-prefiller-host-port")
    }

    fn reading(worker: &Worker) -> u32 {
        let in_flight = |vm: &mut Vm<FakeHost>| {
            let readers = vm.cluster("readers").unwrap();
            readers.in_flight(HostId::of(B))
        };
        worker.vm.enter(in_flight).unwrap()
    }

    #[test]
    fn a_request_that_goes_away_without_an_end_is_taken_back_at_both_hosts() {
        let mut worker = worker(&table(1, up(&[A])));
        let request = new();
        let (exchange, flow) = ask(&mut worker, &request);
        assert_eq!((flow, reader(&request).as_deref()), (Flow::Send, Some(B)));
        assert_eq!((worker.in_flight(A), reading(&worker)), (1, 1));
        drop(exchange);
        worker.tick(50);
        assert_eq!((worker.in_flight(A), reading(&worker)), (0, 0));
    }

    #[test]
    fn readers_whose_policy_is_in_shadow_are_not_named() {
        let mut worker = worker(&table(1, up(&[A])));
        let mut shadow = table(2, up(&[B]));
        shadow.cluster = "readers".into();
        shadow.policy.get_or_insert_default().steer_percent = Some(0);
        worker.push(&shadow);
        let request = new();
        let (_exchange, flow) = ask(&mut worker, &request);
        assert_eq!((flow, reader(&request)), (Flow::Send, None));
        assert_eq!((worker.in_flight(A), reading(&worker)), (1, 0));
    }

    #[test]
    fn the_prompt_of_a_request_that_waits_is_sent_nowhere_until_it_goes_on() {
        let mut worker = worker(&holding(1, 0));
        let request = new();
        let (mut exchange, flow) = ask(&mut worker, &request);
        assert_eq!((flow, reader(&request)), (Flow::Hold, None));
        assert_eq!(reading(&worker), 0);
        worker.push(&holding(2, 4096));
        worker.tick(50);
        assert_eq!(reader(&request).as_deref(), Some(B));
        assert_eq!((worker.in_flight(A), reading(&worker)), (1, 1));
        request.answer(A, &[(":status", "200")]);
        exchange.on_response(&request);
        assert_eq!((worker.in_flight(A), reading(&worker)), (1, 0));
    }

    #[test]
    fn where_the_header_cannot_be_written_nobody_reads_for_the_host() {
        let mut worker = worker(&table(1, up(&[A])));
        let request = new();
        request.deafen_to("x-prefiller-host-port");
        let (_exchange, flow) = ask(&mut worker, &request);
        assert_eq!(flow, Flow::Send);
        assert_eq!((worker.in_flight(A), reading(&worker)), (1, 0));
        let no_host = worker.host.metric("weir_prefills_total{reason=no_host}");
        assert_eq!(no_host, 1);
    }
}
