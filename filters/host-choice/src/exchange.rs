// SPDX-License-Identifier: Apache-2.0
//! One request and its answer, from top to bottom:
//!
//! ```text
//!  on_request ── caller::read ── Vm::decide ─┬─ dispose ── send ── header ──> host ── on_response ── on_end
//!                                            │     └── shed ──> 429 ──────────────────────┘            │
//!                                            └─ hold ── release.rs, on a tick ── dispose    feedback.rs <┘
//! ```
//! Where the key is in the body, all of that comes when enough of it has been read: by `on_body`, or a tick where it
//! is late (`reading.rs`).

use std::rc::Rc;
use std::time::Duration;

use weir_policy::{Decision, HostId, Outcome, Ranked};

use crate::caller::Said;
use crate::config::{BodyKey, Config, KeySource, Prefill};
use crate::disposition::{Disposition, Flow, shed};
use crate::headers::Headers;
use crate::held::{self, HeldRequest, Place};
use crate::host::{Host, Map, RequestHost, Text};
use crate::in_flight::{InFlight, RouteRequest};
use crate::metrics::BodyEnd;
use crate::plugin::Plugin;
use crate::reading::{Announced, Reading, Shown};
use crate::record::Ending;
use crate::tries::Tries;
use crate::vm::{Decided, Vm};
use crate::watch::{End, Watch};
use crate::{answer, bounce, caller, credits, feedback, hedge, prefill};

const DEBUG_HOST: &str = "x-weir-host";
const DEBUG_REASON: &str = "x-weir-reason";
/// Filter state for access logs: `%FILTER_STATE(wasm.weir_reason:PLAIN)%`.
const FILTER_STATE_REASON: &str = "weir_reason";
/// The reason of a request whose choice is only made: Envoy's own is carried out.
const NOT_STEERED: &str = "not_steered";

/// The answer to a request for a WebSocket, say; Envoy has it so whatever the version of HTTP.
const SWITCHING_PROTOCOLS: u32 = 101;

/// A request and its answer.
pub struct Exchange<H: Host> {
    context: u32,
    plugin: Option<Rc<Plugin<H>>>,
    state: State,
}

#[derive(Default)]
pub(crate) enum State {
    /// Not decided yet, left to Envoy because nobody is to decide, or over.
    #[default]
    Undecided,
    /// Its key is in its body.
    Reading(Rc<Reading>),
    Held(Place),
    Decided(Disposition),
}

impl<H: Host> Exchange<H> {
    /// A request that has just come, in this context of the host; without a plugin it is left to Envoy.
    pub fn new(context: u32, plugin: Option<Rc<Plugin<H>>>) -> Self {
        Self {
            context,
            plugin,
            state: State::Undecided,
        }
    }

    /// The request's headers are here; `ends` says whether it has no body.
    pub fn on_request(&mut self, host: &impl RequestHost, ends: bool) -> Flow {
        let (context, state) = (self.context, &mut self.state);
        let flow = self.plugin.as_ref().and_then(|plugin| {
            let at = At::Headers(context, ends, &plugin.shown);
            #[cfg(feature = "crash-test")]
            if let Some(flow) = crate::crash::request(plugin.vm.host(), host) {
                return Some(flow);
            }
            let choose = |vm: &mut Vm<H>| choose(vm, &plugin.config, host, at, state);
            plugin.vm.enter(choose).flatten()
        });
        // What is left to Envoy is let through as it came.
        flow.unwrap_or(Flow::Fallback)
    }

    /// A part of the body is here, perhaps the last.
    pub fn on_body(&mut self, host: &impl RequestHost, is_last: bool) -> Flow {
        self.settle();
        match (&self.plugin, &self.state) {
            (Some(plugin), State::Reading(reading)) => {
                let reading = Rc::clone(reading);
                let is_read = reading.reads(host, is_last);
                if !is_read {
                    return Flow::Hold;
                }
                let decide = |vm: &mut Vm<H>| decide(vm, &reading, host);
                let Some((state, flow)) = plugin.vm.enter(decide) else {
                    return Flow::Fallback;
                };
                self.state = state;
                flow
            }
            (_, State::Held(_)) => Flow::Hold,
            // It goes on as its headers did.
            _ => Flow::Send,
        }
    }

    /// The answer's headers are here, of a host, of Envoy or the filter's own.
    pub fn on_response(&mut self, host: &impl RequestHost) {
        self.settle();
        let (Some(plugin), State::Decided(disposition)) = (&self.plugin, &mut self.state) else {
            return;
        };
        let by = (disposition.in_flight.is_some() || disposition.watch.is_some())
            .then(|| host.text(Text::Upstream, HostId::of))
            .flatten();
        if let (Some(watch), Some(by)) = (&mut disposition.watch, by)
            && let Some(route) = watch.left.take()
        {
            let left = plugin.vm.enter(|vm| vm.left(&route, by)).flatten();
            disposition.in_flight = left;
        }
        if let Some(in_flight) = &mut disposition.in_flight {
            let vm = &plugin.vm;
            vm.enter(|vm| feedback::answered(vm, host, in_flight, by));
            if in_flight.status == Some(SWITCHING_PROTOCOLS) {
                tunnels(plugin, disposition);
            }
        } else if let Some(watch) = &mut disposition.watch {
            let headers = host.headers(Map::Response).unwrap_or_default();
            let status = headers.get(":status").and_then(answer::status);
            watch.answered = status.map(|status| (None, status));
        }
        if plugin.config.debug {
            let _ = host.set_header(Map::Response, DEBUG_REASON, Some(disposition.reason));
            host.text(Text::Upstream, |address| {
                if let Ok(address) = std::str::from_utf8(address) {
                    let _ = host.set_header(Map::Response, DEBUG_HOST, Some(address));
                }
            });
        }
    }

    /// The exchange is over, however it ended.
    pub fn on_end(&mut self, host: &impl RequestHost) {
        self.settle();
        let Some(plugin) = &self.plugin else {
            return;
        };
        match std::mem::take(&mut self.state) {
            State::Undecided | State::Reading(_) => None,
            State::Held(place) => plugin.vm.enter(|vm| vm.leave(place)),
            State::Decided(disposition) => plugin.vm.enter(|vm| over(vm, host, disposition)),
        };
    }

    /// Takes over what was decided while the request was held.
    fn settle(&mut self) {
        if let State::Reading(reading) = &self.state
            && let Some(state) = reading.take_decision()
        {
            self.state = state;
        }
        if let State::Held(place) = &mut self.state
            && let Some(disposition) = place.disposition()
        {
            self.state = State::Decided(disposition);
        }
    }
}

/// A tunnel is open for as long as both ends like: it is no job that others wait for.
#[cold]
fn tunnels<H: Host>(plugin: &Plugin<H>, disposition: &mut Disposition) {
    let Some(mut sent) = disposition.in_flight.take() else {
        return;
    };
    let ending = Ending::Status(SWITCHING_PROTOCOLS);
    plugin.vm.enter(|vm| vm.end(&mut sent, ending));
    if let Some(watch) = &mut disposition.watch {
        watch.answered = Some((Some(sent.host), SWITCHING_PROTOCOLS));
    }
}

/// A request that was decided is over.
fn over<H: Host>(vm: &mut Vm<H>, host: &impl RequestHost, disposition: Disposition) {
    let Disposition {
        in_flight, watch, ..
    } = disposition;
    match (in_flight, watch) {
        (Some(mut sent), None) => {
            feedback::ended(vm, host, &mut sent);
        }
        (sent, Some(watch)) => watched(vm, host, sent, *watch),
        (None, None) => {}
    }
}

/// The same, of one that is watched.
#[inline(never)]
fn watched<H: Host>(
    vm: &mut Vm<H>,
    host: &impl RequestHost,
    sent: Option<Box<InFlight>>,
    watch: Watch,
) {
    let (at, ending) = match sent.map(|mut sent| feedback::ended(vm, host, &mut sent)) {
        Some((at, ending)) => (Some(at), ending),
        None => match watch.answered {
            Some((at, status)) => (at, Ending::Status(status)),
            None => (None, Ending::NoAnswer),
        },
    };
    let address = at.and_then(|at| vm.address(&watch.table, at));
    let address = address.map(str::to_owned);
    vm.watched(watch, End { address, ending });
}

/// Leaves a request to Envoy, whose choice is known when a host answers.
#[inline(never)]
fn leave(
    host: &impl RequestHost,
    route: RouteRequest,
    mut watch: Box<Watch>,
    state: &mut State,
) -> Flow {
    host.set_filter_state(FILTER_STATE_REASON, NOT_STEERED);
    watch.left = Some(route);
    *state = State::Decided(Disposition {
        reason: NOT_STEERED,
        in_flight: None,
        watch: Some(watch),
    });
    Flow::Fallback
}

/// How far a request has come, and its context.
#[derive(Clone, Copy)]
enum At<'a> {
    /// To its headers; whether that is all of it, and whether the proxy shows bodies.
    Headers(u32, bool, &'a Rc<Shown>),
    /// So far in its body as that is to be read.
    Body(&'a Reading),
}

/// Request and decision, with what is known of its body.
pub(crate) fn decide<H: Host>(
    vm: &mut Vm<H>,
    reading: &Reading,
    host: &impl RequestHost,
) -> (State, Flow) {
    let end = reading.end();
    vm.metrics.body(&vm.host, end);
    let mut state = State::Undecided;
    let flow = choose(vm, &reading.config, host, At::Body(reading), &mut state);
    // As in `on_request`.
    (state, flow.unwrap_or(Flow::Fallback))
}

/// The key is in the body, which is to be read first, if it can be.
#[inline(never)]
fn read<H: Host>(
    vm: &mut Vm<H>,
    (config, shown, key): (&Rc<Config>, &Rc<Shown>, &BodyKey),
    headers: Option<&Headers>,
    context: u32,
) -> Option<Rc<Reading>> {
    let now = vm.host.now();
    let announced = headers.and_then(Announced::readable);
    let reading = announced.and_then(|announced| {
        let readings = &mut vm.readings;
        readings.begin((config, shown), (key, &announced), context, now)
    });
    if reading.is_none() {
        vm.metrics.body(&vm.host, BodyEnd::Unread);
    }
    reading
}

/// Request and decision; none where the cluster is not configured, or not enabled.
fn choose<H: Host>(
    vm: &mut Vm<H>,
    config: &Rc<Config>,
    host: &impl RequestHost,
    at: At<'_>,
    state: &mut State,
) -> Option<Flow> {
    let cluster = match config.only_cluster() {
        Some(only) => Some(only),
        None => host
            .text(Text::Cluster, |name| config.cluster(name))
            .flatten(),
    };
    let cluster = cluster?;
    if let Some(prefill) = &cluster.prefill
        && let At::Headers(..) = at
    {
        prefill::remove(prefill, host);
    }
    if !cluster.enabled {
        return None;
    }
    // Unreadable headers: the caller is not trusted.
    let headers = host.headers(Map::Request).ok();
    if let (KeySource::Body(key), At::Headers(context, false, shown)) = (&cluster.key, &at)
        && let Some(reading) = read(vm, (config, shown, key), headers.as_ref(), *context)
    {
        *state = State::Reading(reading);
        return Some(Flow::Hold);
    }
    let (context, ends, names) = match at {
        At::Headers(context, ends, _) => (context, ends, Vec::new()),
        At::Body(reading) => (reading.context, false, reading.names()),
    };
    // Where the proxy shows bodies it keeps those of requests that wait, and refuses what its buffer does not take.
    let may_wait = match at {
        At::Headers(_, ends, _) => ends || !config.reads_bodies,
        At::Body(reading) => reading.is_whole(),
    };
    let random = vm.random();
    let said = (headers.as_ref(), names.as_slice());
    let said = caller::read(config, cluster, said, random, (&vm.host, host));
    if said.is_disbelieved {
        vm.disbelieves();
    }
    let Said {
        request,
        has_time_out,
        ..
    } = said;
    let now = vm.host.now();
    let deadline = || match may_wait {
        true => held::deadline(headers.as_ref(), now),
        false => Some(now),
    };
    let decided = vm.decide(&cluster.table, &request, (now, random), deadline)?;
    let Decided {
        decision,
        patience,
        second,
        watch,
    } = decided;
    let route = RouteRequest {
        table: Rc::clone(&cluster.table),
        request,
        may_hedge: second.hedges && hedge::may(config.trust, headers.as_ref(), host),
        has_time_out,
        may_bounce: second.bounces && bounce::may(headers.as_ref(), ends),
        asks_credits: second.credits,
    };
    let watch = match watch {
        Some(watch) if !watch.is_steered => return Some(leave(host, route, watch, state)),
        watch => watch,
    };
    if let Outcome::Hold { until } = decision.outcome {
        host.set_filter_state(FILTER_STATE_REASON, decision.reason.as_str());
        let waiting = HeldRequest::new(context, route, patience, (&cluster.prefill, watch));
        let place = vm.hold(waiting, patience, (until, decision.reason))?;
        *state = State::Held(place);
        return Some(Flow::Hold);
    }
    let prefill = cluster.prefill.as_deref();
    let (flow, in_flight) = dispose(vm, host, (&route, prefill), decision, now);
    *state = State::Decided(Disposition::new(&decision, in_flight, watch));
    Some(flow)
}

/// A decision's consequence for a request: it goes to a host, is left to Envoy or shed.
pub(crate) fn dispose<H: Host>(
    vm: &mut Vm<H>,
    host: &impl RequestHost,
    (route, prefill): (&RouteRequest, Option<&Prefill>),
    decision: Decision,
    now: Duration,
) -> (Flow, Option<Box<InFlight>>) {
    host.set_filter_state(FILTER_STATE_REASON, decision.reason.as_str());
    match decision.outcome {
        Outcome::Send(hosts) => match send(vm, host, (route, prefill), hosts, now) {
            Some(in_flight) => (Flow::Send, Some(in_flight)),
            None => (Flow::Fallback, None),
        },
        Outcome::Fallback | Outcome::Hold { .. } => (Flow::Fallback, None),
        Outcome::Shed { retry_after } => {
            vm.shed(&route.table, route.request.rank);
            if route.asks_credits {
                vm.is_refused(&route.table, now);
            }
            (shed(retry_after, vm.random()), None)
        }
    }
}

/// Names the hosts for Envoy; none where they cannot be named.
fn send<H: Host>(
    vm: &mut Vm<H>,
    host: &impl RequestHost,
    (route, prefill): (&RouteRequest, Option<&Prefill>),
    hosts: Ranked,
    now: Duration,
) -> Option<Box<InFlight>> {
    let (first, destination) = vm.destination(&route.table, &hosts)?;
    host.send_to(Some(destination)).ok()?;
    let prefilling =
        prefill.and_then(|prefill| prefill::name(vm, host, (route, prefill), &hosts, now));
    let second = route.may_hedge.then(|| vm.hedge(route, &hosts, now));
    let hedge = second.flatten().filter(|hedge| {
        let is_asked = hedge::ask(hedge.after, host);
        if !is_asked {
            vm.hedge_ended(&route.table, hedge.host);
        }
        is_asked
    });
    // How long it may wait at a host is told by how long hosts would read for it.
    let may_bounce = route.may_bounce && hedge.is_none() && prefilling.is_none();
    let tries = may_bounce.then(|| offer(vm, host, route, &hosts, now));
    let reads = prefilling.is_none();
    let mut in_flight = vm.send(route, (first, now), (hedge, tries.flatten()), reads);
    in_flight.prefilling = prefilling;
    if route.asks_credits {
        ask_for_credits(vm, host, &in_flight, now);
    }
    Some(in_flight)
}

/// Tells the host how many requests this VM wants to have there.
#[inline(never)]
fn ask_for_credits<H: Host>(
    vm: &Vm<H>,
    host: &impl RequestHost,
    in_flight: &InFlight,
    now: Duration,
) {
    if let Some(demand) = vm.demand(&in_flight.table, in_flight.host, now) {
        let _ = host.set_header(Map::Request, credits::DEMAND, Some(&demand.written()));
    }
}

/// Says for how long it may wait at the first host. Apart, so that other requests do not pay for it.
#[inline(never)]
fn offer<H: Host>(
    vm: &mut Vm<H>,
    host: &impl RequestHost,
    route: &RouteRequest,
    hosts: &Ranked,
    now: Duration,
) -> Option<Rc<Tries>> {
    let (bound, tries) = vm.offer(route, hosts, now)?;
    if bounce::offer(&tries, bound, host) {
        return Some(tries);
    }
    vm.forget(tries.id);
    None
}

#[cfg(test)]
mod tests;
