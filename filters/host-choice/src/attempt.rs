// SPDX-License-Identifier: Apache-2.0
//! One attempt of a request at a host, as the filter sees it where it is an upstream filter of the cluster: it tells the
//! host how long the request may wait, and believes at once what a host says that gives it back.

use std::rc::Rc;

use weir_policy::HostId;

use crate::bounce;
use crate::host::{Host, Map, RequestHost, Text};
use crate::orca;
use crate::plugin::Plugin;
use crate::tries::Tries;

/// An attempt at a host.
pub struct Attempt<H: Host> {
    plugin: Option<Rc<Plugin<H>>>,
    /// What it is one of, and which; none where the host may not give it back.
    tries: Option<(Rc<Tries>, usize)>,
}

impl<H: Host> Attempt<H> {
    /// One that has just begun.
    pub fn new(plugin: Option<Rc<Plugin<H>>>) -> Self {
        let tries = None;
        Self { plugin, tries }
    }

    /// The request's headers are on their way to the host.
    pub fn on_request(&mut self, host: &impl RequestHost) {
        let Some(plugin) = &self.plugin else {
            return;
        };
        let headers = host.headers(Map::Request).unwrap_or_default();
        let tries = |id| plugin.vm.enter(|vm| vm.tries(id)).flatten();
        let tries = bounce::id(&headers).and_then(tries);
        let begun = tries.as_ref().map(|tries| tries.begin());
        match (&tries, begun) {
            // As the exchange has written it.
            (Some(_), Some((0, _))) => {}
            // Headers stay from one attempt to the next.
            (Some(tries), Some((_, Some(bound)))) => {
                bounce::offer(tries, bound, host);
            }
            // Nobody here would know of a bounce, or it is for the last one to take it.
            _ => bounce::withdraw(&headers, host),
        }
        let number = begun.map_or(0, |(number, _)| number);
        self.tries = tries.map(|tries| (tries, number));
    }

    /// The answer's headers are here. Envoy tries again by one of them: of a host that may not give the request back
    /// it goes no further, as that host may have done the work.
    pub fn on_response(&mut self, host: &impl RequestHost) {
        if self.plugin.is_some() && !self.is_given_back(host) {
            let _ = host.set_header(Map::Response, bounce::BOUNCED, None);
        }
    }

    /// Whether the host gives the request back and may do so; the next one has it then.
    fn is_given_back(&mut self, host: &impl RequestHost) -> bool {
        let (Some(plugin), Some((tries, number))) = (&self.plugin, self.tries.take()) else {
            return false;
        };
        let headers = host.headers(Map::Response).unwrap_or_default();
        let [bounced, said] = headers.get_each([bounce::BOUNCED, orca::HEADER]);
        if bounced.is_none() {
            return false;
        }
        let now = plugin.vm.host().now();
        let said = said.and_then(|value| orca::parse(value, now));
        let load = said.and_then(|said| said.load);
        let by = host.text(Text::Upstream, HostId::of);
        let bounced = plugin.vm.enter(|vm| vm.bounced(&tries, (number, by), load));
        bounced.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests;
