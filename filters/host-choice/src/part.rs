// SPDX-License-Identifier: Apache-2.0
//! What the filter does for one request or attempt, by the role of the configuration that it came by.

use std::rc::Rc;

use crate::attempt::Attempt;
use crate::config::Role;
use crate::disposition::Flow;
use crate::exchange::Exchange;
use crate::host::{Host, RequestHost};
use crate::inbound::Inbound;
use crate::plugin::Plugin;

/// The filter's part in a request, until its host forgets it.
pub enum Part<H: Host> {
    /// At the caller.
    Exchange(Exchange<H>),
    /// At the caller, where the request is sent to one host.
    Attempt(Attempt<H>),
    /// At the host.
    Inbound(Inbound<H>),
}

impl<H: Host> Part<H> {
    /// That in a request or attempt that comes, in this context of the host; without a plugin it is left to Envoy.
    pub fn new(context: u32, plugin: Option<Rc<Plugin<H>>>) -> Self {
        match plugin.as_ref().map(|plugin| plugin.role()) {
            None | Some(Role::Caller) => Self::Exchange(Exchange::new(context, plugin)),
            Some(Role::Attempt) => Self::Attempt(Attempt::new(plugin)),
            Some(Role::Host) => Self::Inbound(Inbound::new(plugin)),
        }
    }

    /// Its headers are here, and nothing follows where it `ends`; says what is to become of it.
    pub fn on_headers(&mut self, host: &impl RequestHost, ends: bool) -> Flow {
        match self {
            Self::Exchange(exchange) => exchange.on_request(host, ends),
            Self::Attempt(attempt) => {
                attempt.on_request(host);
                Flow::Send
            }
            Self::Inbound(inbound) if ends => inbound.on_request(host),
            Self::Inbound(inbound) => inbound.on_headers(host),
        }
    }

    /// A part of its body is here, perhaps the last.
    pub fn on_body(&mut self, host: &impl RequestHost, is_last: bool) -> Flow {
        match self {
            Self::Exchange(exchange) => exchange.on_body(host, is_last),
            Self::Attempt(_) => Flow::Send,
            Self::Inbound(inbound) => inbound.on_body(host, is_last),
        }
    }

    /// The answer's headers are here.
    pub fn on_response(&mut self, host: &impl RequestHost) {
        match self {
            Self::Exchange(exchange) => exchange.on_response(host),
            Self::Attempt(attempt) => attempt.on_response(host),
            Self::Inbound(inbound) => inbound.on_response(host),
        }
    }

    /// It is over, however it ended.
    pub fn on_end(&mut self, host: &impl RequestHost) {
        match self {
            Self::Exchange(exchange) => exchange.on_end(host),
            Self::Attempt(_) => {}
            Self::Inbound(inbound) => inbound.on_end(),
        }
    }
}
