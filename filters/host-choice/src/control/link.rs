// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use crate::host::{Host, LogLevel};
use crate::shared;
use crate::stream::Backoff;
use crate::vm::Vm;

/// Metadata of both streams: which process of the proxy it is. An Envoy that takes over from another has its
/// name, and both keep their streams.
const PROCESS: &str = "x-weir-process";
/// From this try in vain on it is said, and again each time that there were twice as many: a mesh gives a new sidecar
/// the endpoints of weir-control seconds after its listeners.
const SAID_FROM: u32 = 16;

/// A stream, or the pause before the next attempt at one.
#[derive(Default)]
pub(super) struct Link {
    pub(super) token: Option<u32>,
    /// Whether anything came through it.
    pub(super) works: bool,
    /// Attempts at it since one worked.
    pub(super) tries: u32,
    pub(super) backoff: Backoff,
}

impl Link {
    /// Whether a stream was opened just now.
    pub(super) fn open<H: Host>(
        &mut self,
        cluster: &str,
        method: (&str, &str),
        vm: &mut Vm<H>,
        now: Duration,
    ) -> bool {
        if self.token.is_some() || !self.backoff.is_over(now) {
            return false;
        }
        let process = shared::process(&vm.host);
        self.tries = self.tries.saturating_add(1);
        match vm
            .host
            .open_stream(cluster, method, (PROCESS, process.as_bytes()))
        {
            Ok(token) => (self.token, self.works) = (Some(token), false),
            Err(_) if vm.index().0.entries.is_empty() => {
                self.backoff.not_yet(now, vm.random());
            }
            Err(_) => self.backoff.failed(now, Duration::ZERO, vm.random()),
        }
        if self.token.is_none() && self.tries >= SAID_FROM && self.tries.is_power_of_two() {
            let words = format!(
                "no stream to weir-control after {} tries: see that this Envoy has a cluster {cluster} \
                 (control_cluster) with a host that is up; {}",
                self.tries,
                serves(vm)
            );
            vm.host.log(LogLevel::Warn, &words);
        }
        self.token.is_some()
    }

    /// Something came through it.
    pub(super) fn works(&mut self) {
        self.backoff.succeeded();
        (self.works, self.tries) = (true, 0);
    }

    pub(super) fn send<H: Host>(&mut self, message: &[u8], vm: &mut Vm<H>, now: Duration) {
        if let Some(token) = self.token
            && vm.host.send_message(token, message).is_err()
        {
            self.close(&vm.host);
            self.backoff.failed(now, Duration::ZERO, vm.random());
        }
    }

    pub(super) fn close(&mut self, host: &impl Host) {
        if let Some(token) = self.token.take() {
            host.cancel_stream(token);
        }
    }
}

/// What serves while weir-control cannot be reached.
pub(super) fn serves<H: Host>(vm: &Vm<H>) -> &'static str {
    match vm.index().0.entries.is_empty() {
        true => "no table has come yet, so Envoy's own policy chooses",
        false => "the last tables serve",
    }
}
