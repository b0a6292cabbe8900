// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use crate::host::Host;
use crate::shared;
use crate::stream::Backoff;
use crate::vm::Vm;

/// Metadata of both streams: which process of the proxy it is. An Envoy that takes over from another has its
/// name, and both keep their streams.
const PROCESS: &str = "x-weir-process";

/// A stream, or the pause before the next attempt at one.
#[derive(Default)]
pub(super) struct Link {
    pub(super) token: Option<u32>,
    /// Whether anything came through it.
    pub(super) works: bool,
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
        self.token.is_some()
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
