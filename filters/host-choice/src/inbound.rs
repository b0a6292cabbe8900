// SPDX-License-Identifier: Apache-2.0
//! One request at the proxy of the host that is to do it: given back where it would wait longer than its caller allows,
//! refused where all wait too long and its caller goes by credits. Answers tell the host's load where the application
//! does not, and give credits. A request is work from when it is here in whole, or is answered: what clients take to send
//! it is theirs, and a thousand that are never sent in whole are no queue.

use std::rc::Rc;
use std::time::Duration;

use weir_policy::overload::breakwater;

use crate::bounce;
use crate::config::Config;
use crate::credits::{self, Demand};
use crate::disposition::{Flow, RESOURCE_EXHAUSTED, shed};
use crate::host::{Host, Map, RequestHost, Response};
use crate::occupancy;
use crate::orca;
use crate::plugin::Plugin;
use crate::vm::Vm;

/// Headers of the caller's proxy, which the application does not get.
const OF_PROXIES: [&str; 2] = [bounce::MAY_WAIT, credits::DEMAND];
/// Mean of the time after which what was refused may come again: the default of the callers' `retry_after`.
const RETRY_AFTER: Duration = Duration::from_millis(1000);

/// A request that has come to its host.
pub struct Inbound<H: Host> {
    plugin: Option<Rc<Plugin<H>>>,
    admitted: Option<Admitted>,
    /// It waits for the end of its body.
    is_held: bool,
}

/// What becomes of a request.
enum Verdict {
    Admit(Admitted),
    /// It waits for the end of its body.
    Hold,
    /// The caller gets this load with it.
    GiveBack(String),
    /// It waits too long here whatever its caller allows.
    Refuse(Refusal),
}

/// For the caller to believe.
struct Refusal {
    load: String,
    credits: u32,
    random: u64,
}

/// A request at the application.
struct Admitted {
    /// None while it is still being sent.
    work: Option<Work>,
    /// The application did what was asked.
    is_well: bool,
    /// Its caller is to get credits.
    demand: Option<Demand>,
}

/// A request that the application can work on.
struct Work {
    since: Duration,
    /// A core was idle for it.
    had_core: bool,
}

impl<H: Host> Inbound<H> {
    /// One that has just come; without a plugin it is let through.
    pub fn new(plugin: Option<Rc<Plugin<H>>>) -> Self {
        Self {
            plugin,
            admitted: None,
            is_held: false,
        }
    }

    /// The request's headers are here, and its body is not yet. Its caller's Envoy tries no request again that it has
    /// not sent in whole: one that is to be given back waits until it is here in whole, and is judged then.
    pub fn on_headers(&mut self, host: &impl RequestHost) -> Flow {
        self.judge(host, false)
    }

    /// A part of the body is here, perhaps the last.
    pub fn on_body(&mut self, host: &impl RequestHost, is_last: bool) -> Flow {
        match (self.is_held, is_last) {
            (false, false) => Flow::Send,
            (false, true) => {
                self.begin(true);
                Flow::Send
            }
            (true, false) => Flow::Hold,
            (true, true) => self.judge(host, true),
        }
    }

    /// All of the request is here.
    pub fn on_request(&mut self, host: &impl RequestHost) -> Flow {
        self.judge(host, true)
    }

    fn judge(&mut self, host: &impl RequestHost, is_whole: bool) -> Flow {
        self.is_held = false;
        let Some(plugin) = &self.plugin else {
            return Flow::Send;
        };
        let headers = host.headers(Map::Request).unwrap_or_default();
        let said = headers.get_each(OF_PROXIES);
        let [bound, demand] = said;
        let (bound, demand) = (bound.and_then(bounce::bound), demand.and_then(Demand::read));
        let config = &plugin.config;
        let judge = |vm: &mut Vm<H>| {
            let in_flight = vm.inbound();
            match waits_too_long(vm, in_flight, config.cores, bound) {
                true if is_whole => Verdict::GiveBack(refuse(vm, in_flight, config.cores)),
                true if config.bodies => Verdict::Hold,
                _ => match demand.and_then(|demand| refusal(vm, config, in_flight, demand)) {
                    Some(refusal) => Verdict::Refuse(refusal),
                    None => Verdict::Admit(Admitted {
                        work: is_whole.then(|| begin(vm, in_flight, config.cores)),
                        is_well: false,
                        demand,
                    }),
                },
            }
        };
        match plugin.vm.enter(judge) {
            Some(Verdict::GiveBack(load)) => give_back(load),
            Some(Verdict::Refuse(refusal)) => refusal.answer(),
            Some(Verdict::Hold) => {
                self.is_held = true;
                Flow::Hold
            }
            Some(Verdict::Admit(admitted)) => {
                self.admitted = Some(admitted);
                // An application that hands its headers on would ask other hosts for what nobody offered them.
                for (name, _) in OF_PROXIES
                    .iter()
                    .zip(said)
                    .filter(|(_, said)| said.is_some())
                {
                    let _ = host.set_header(Map::Request, name, None);
                }
                Flow::Send
            }
            None => Flow::Send,
        }
    }

    /// The application can work on it, or does so before it `is_whole`, if that is not known yet.
    fn begin(&mut self, is_whole: bool) {
        let (Some(plugin), Some(admitted)) = (&self.plugin, &mut self.admitted) else {
            return;
        };
        if admitted.work.is_none() {
            // How long it takes from when it is answered is no run.
            let cores = if is_whole { plugin.config.cores } else { 0 };
            admitted.work = plugin.vm.enter(|vm| begin(vm, vm.inbound(), cores));
        }
    }

    /// The answer's headers are here.
    pub fn on_response(&mut self, host: &impl RequestHost) {
        self.begin(false);
        let (Some(plugin), Some(admitted)) = (&self.plugin, &mut self.admitted) else {
            return;
        };
        let headers = host.headers(Map::Response).unwrap_or_default();
        let [status, load] = headers.get_each([":status", orca::HEADER]);
        admitted.is_well = matches!(status, Some([b'2' | b'3', ..]));
        let is_tunnel = status == Some(b"101");
        if load.is_none()
            && let Some(in_flight) = plugin.vm.enter(|vm| vm.inbound())
        {
            // The request itself is done.
            let load = occupancy::report(in_flight.saturating_sub(1), plugin.config.cores);
            let _ = host.set_header(Map::Response, orca::HEADER, Some(&load));
        }
        if let Some(demand) = admitted.demand
            && let Some(credits) = plugin.vm.enter(|vm| {
                // The request itself is done.
                let in_flight = vm.inbound().saturating_sub(1);
                grant(vm, &plugin.config, in_flight, demand)
            })
        {
            let credits = credits.to_string();
            let _ = host.set_header(Map::Response, credits::CREDITS, Some(&credits));
        }
        if is_tunnel {
            // It is open for as long as both ends like, and is no job that others wait for.
            self.on_end();
        }
    }

    /// The exchange is over, however it ended.
    pub fn on_end(&mut self) {
        if let (Some(plugin), Some(admitted)) = (&self.plugin, self.admitted.take()) {
            plugin.vm.enter(|vm| leaves(vm, &admitted));
        }
    }
}

impl<H: Host> Drop for Inbound<H> {
    fn drop(&mut self) {
        self.on_end();
    }
}

fn waits_too_long<H: Host>(
    vm: &Vm<H>,
    in_flight: u64,
    cores: u32,
    bound: Option<Duration>,
) -> bool {
    bound.is_some_and(|bound| {
        let wait = vm.occupancy.wait(in_flight, cores);
        wait.is_some_and(|wait| wait > bound)
    })
}

/// What the host has, for the caller to believe.
fn refuse<H: Host>(vm: &Vm<H>, in_flight: u64, cores: u32) -> String {
    vm.metrics.given_back.increment(&vm.host);
    occupancy::report(in_flight, cores)
}

/// Why the host does not take a request whose caller goes by credits, if it does not.
#[inline(never)]
fn refusal<H: Host>(
    vm: &mut Vm<H>,
    config: &Config,
    in_flight: u64,
    demand: Demand,
) -> Option<Refusal> {
    let wait = vm.occupancy.wait(in_flight, config.cores)?;
    if !params(config).refuses(wait) {
        return None;
    }
    vm.metrics.refused.increment(&vm.host);
    Some(Refusal {
        load: occupancy::report(in_flight, config.cores),
        credits: grant(vm, config, in_flight, demand),
        random: vm.random(),
    })
}

/// New credits for a VM of a caller's proxy.
#[inline(never)]
fn grant<H: Host>(vm: &mut Vm<H>, config: &Config, in_flight: u64, demand: Demand) -> u32 {
    let (now, there) = (vm.host.now(), (in_flight, config.cores));
    vm.credits.renew(&params(config), &vm.occupancy, there, now);
    vm.credits.grant(demand.vm, demand.requests, now)
}

fn params(config: &Config) -> breakwater::Params {
    breakwater::Params {
        target: config.target_delay,
        ..breakwater::Params::default()
    }
}

fn begin<H: Host>(vm: &Vm<H>, in_flight: u64, cores: u32) -> Work {
    vm.metrics.inbound.add(&vm.host, 1);
    Work {
        since: vm.host.now(),
        had_core: in_flight < cores.into(),
    }
}

fn leaves<H: Host>(vm: &mut Vm<H>, admitted: &Admitted) {
    let Some(work) = &admitted.work else { return };
    vm.metrics.inbound.add(&vm.host, -1);
    // What was refused, or went away, is no run.
    if work.had_core && admitted.is_well {
        let took = vm.host.now().saturating_sub(work.since);
        vm.occupancy.ran(took);
    }
}

impl Refusal {
    /// Neither a fault of the host nor one that the route tries again.
    fn answer(self) -> Flow {
        let mut flow = shed(RETRY_AFTER, self.random);
        if let Flow::Respond(response) = &mut flow {
            response.headers.extend([
                (orca::HEADER, self.load),
                (credits::CREDITS, self.credits.to_string()),
            ]);
        }
        flow
    }
}

/// No fault of the host: outlier detection and retries of failures pass it by.
fn give_back(load: String) -> Flow {
    Flow::Respond(Box::new(Response {
        status: 429,
        grpc_status: RESOURCE_EXHAUSTED,
        details: "weir_bounced",
        body: String::new(),
        headers: vec![(bounce::BOUNCED, "1".into()), (orca::HEADER, load)],
    }))
}

#[cfg(test)]
mod bodies;
#[cfg(test)]
mod tests;
