// SPDX-License-Identifier: Apache-2.0
//! One request and its answer.

use std::rc::Rc;
use std::time::Duration;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use weir_policy::{Decision, Outcome, Reason};

use crate::config::{ClusterConfig, Config};
use crate::held::{self, Waiter};
use crate::hostcalls::{self, Map};
use crate::in_flight::{InFlight, RouteRequest, pass};
use crate::refusal::shed;
use crate::{caller, hedge, vm};

const DEBUG_HOST: &str = "x-weir-host";
const DEBUG_REASON: &str = "x-weir-reason";
/// Filter state for access logs: `%FILTER_STATE(wasm.weir_reason:PLAIN)%`.
const FILTER_STATE_REASON: &str = "weir_reason";

pub(crate) struct Exchange {
    id: u32,
    config: Option<Rc<Config>>,
    disposition: Option<Disposition>,
    /// While it waits for a host.
    held: Option<Waiter>,
}

/// Disposition of a request: the reason, and its attempt where it went to a host.
pub(crate) struct Disposition {
    reason: Reason,
    in_flight: Option<InFlight>,
}

impl Exchange {
    pub(crate) fn new(id: u32, config: Option<Rc<Config>>) -> Self {
        Self {
            id,
            config,
            disposition: None,
            held: None,
        }
    }

    /// Decides; what is left to Envoy is let through as it came.
    fn choose(&mut self, config: &Config) -> Action {
        let Some(cluster) = cluster_of(config) else {
            return pass();
        };
        // Who cannot be read is not believed either.
        let headers = hostcalls::headers(Map::Request).ok();
        let random = vm::with(|vm| vm.random()).unwrap_or(0);
        let (request, has_time_out) = caller::read(config, cluster, headers.as_ref(), random);
        let now = hostcalls::monotonic();
        let table = &cluster.table;
        let deadline = || held::deadline(headers.as_ref(), now);
        let decided = vm::with(|vm| vm.decide(table, &request, now, deadline)).flatten();
        let Some((decision, patience, hedges)) = decided else {
            return pass();
        };
        let route = RouteRequest {
            table: Rc::clone(table),
            request,
            may_hedge: hedges && hedge::may(config.trust, headers.as_ref()),
            has_time_out,
        };
        if let Outcome::Hold { .. } = decision.outcome {
            let _ = hostcalls::set_filter_state(FILTER_STATE_REASON, decision.reason.as_str());
            self.held = Waiter::take(self.id, &route, patience, decision);
            return match self.held {
                Some(_) => Action::Pause,
                None => pass(),
            };
        }
        let (action, disposition) = dispose(&route, decision, now);
        self.disposition = Some(disposition);
        action
    }

    /// Takes over what was decided while the request was held.
    fn settle(&mut self) {
        if let Some(disposition) = self.held.as_ref().and_then(Waiter::disposition) {
            self.disposition = Some(disposition);
            self.held = None;
        }
    }
}

/// Carries out a decision for the request of the present context: the request goes on, or was answered.
pub(crate) fn dispose(
    route: &RouteRequest,
    decision: Decision,
    now: Duration,
) -> (Action, Disposition) {
    let reason = decision.reason;
    let _ = hostcalls::set_filter_state(FILTER_STATE_REASON, reason.as_str());
    let mut in_flight = None;
    let action = match decision.outcome {
        Outcome::Send(hosts) => {
            in_flight = InFlight::to(route, hosts, now);
            match in_flight {
                Some(_) => Action::Continue,
                None => pass(),
            }
        }
        Outcome::Fallback | Outcome::Hold { .. } => pass(),
        Outcome::Shed { retry_after } => {
            let random = vm::with(|vm| {
                vm.shed(&route.table);
                vm.random()
            });
            shed(retry_after, random.unwrap_or(0))
        }
    };
    (action, Disposition { reason, in_flight })
}

impl Context for Exchange {}

impl HttpContext for Exchange {
    fn on_http_request_headers(&mut self, _count: usize, _end: bool) -> Action {
        #[cfg(feature = "crash-test")]
        if let Some(action) = crate::crash::request() {
            return action;
        }
        match self.config.clone() {
            Some(config) => self.choose(&config),
            None => pass(),
        }
    }

    fn on_http_response_headers(&mut self, _count: usize, _end: bool) -> Action {
        self.settle();
        let Some(disposition) = &mut self.disposition else {
            return Action::Continue;
        };
        let debug = self.config.as_ref().is_some_and(|config| config.debug);
        let address = (debug || disposition.in_flight.is_some())
            .then(|| hostcalls::property("upstream\0address"))
            .flatten();
        let address = address.as_deref().and_then(|a| std::str::from_utf8(a).ok());
        if let Some(in_flight) = &mut disposition.in_flight {
            in_flight.answered(address);
        }
        if debug {
            let _ = hostcalls::set_header(Map::Response, DEBUG_REASON, disposition.reason.as_str());
            if let Some(address) = address {
                let _ = hostcalls::set_header(Map::Response, DEBUG_HOST, address);
            }
        }
        Action::Continue
    }

    fn on_log(&mut self) {
        self.settle();
        if let Some(place) = self.held.take() {
            place.leave();
        }
        if let Some(sent) = self
            .disposition
            .take()
            .and_then(|disposition| disposition.in_flight)
        {
            sent.ended();
        }
    }
}

fn cluster_of(config: &Config) -> Option<&ClusterConfig> {
    if let Some(only) = config.only_cluster() {
        return Some(only);
    }
    let name = hostcalls::property("xds\0cluster_name")?;
    config.cluster(std::str::from_utf8(&name).ok()?)
}
