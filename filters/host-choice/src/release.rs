// SPDX-License-Identifier: Apache-2.0
//! Lets held requests go on: decides anew, on a tick, for all that wait.
//!
//! ```text
//!  for each, most important first (weir_policy::WaitQueue):
//!    with the VM:    decide ── select its context ── name its hosts, or shed ── leave that for its exchange
//!    without the VM: tell the proxy, which may call back for that exchange at once
//! ```

use std::time::Duration;

use weir_policy::Round;

use crate::disposition::{Action, Disposition, Flow};
use crate::exchange::{decide, dispose};
use crate::handle::VmHandle;
use crate::host::{Host, RequestHost};
use crate::vm::Vm;

/// Decides for each request of whose body nothing has come in time. `select` as for [`release`].
pub(crate) fn late<H: Host, R: RequestHost>(
    vm: &VmHandle<H>,
    select: impl Fn(u32) -> Option<R>,
    now: Duration,
) -> bool {
    let mut any = false;
    let next = |vm: &mut Vm<H>| vm.readings.next_late(&vm.host, now);
    while let Some(reading) = vm.enter(next).flatten() {
        any = true;
        let Some(host) = select(reading.context) else {
            continue;
        };
        let Some((state, flow)) = vm.enter(|vm| decide(vm, &reading, &host)) else {
            continue;
        };
        reading.leave_decision(state);
        if flow.carry_out(&host) == Action::Continue {
            let _ = host.resume();
        }
    }
    any
}

/// Carries out what is decided for each request that need not or must not wait any longer. `select` finds one by its
/// context, and makes the calls that follow act in it; it is gone where that fails. Says whether any was looked for.
pub(crate) fn release<H: Host, R: RequestHost>(
    vm: &VmHandle<H>,
    select: impl Fn(u32) -> Option<R>,
    now: Duration,
) -> bool {
    let tables = vm.enter(|vm| vm.tables_with_held()).unwrap_or_default();
    for table in &tables {
        let mut round = Round::default();
        while let Some(next) = vm
            .enter(|vm| next(vm, table, &mut round, &select, now))
            .flatten()
        {
            let Released::Here(host, flow) = next else {
                continue;
            };
            if flow.carry_out(&host) == Action::Continue {
                let _ = host.resume();
            }
        }
    }
    !tables.is_empty()
}

/// A held request that was decided.
enum Released<R> {
    Here(R, Flow),
    /// Its context is gone, without a word.
    Gone,
}

fn next<H: Host, R: RequestHost>(
    vm: &mut Vm<H>,
    table: &str,
    round: &mut Round,
    select: impl Fn(u32) -> Option<R>,
    now: Duration,
) -> Option<Released<R>> {
    let (waiting, decision) = vm.next_released(table, round, now)?;
    let Some(host) = select(waiting.context) else {
        return Some(Released::Gone);
    };
    waiting.shorten(&host, now);
    let route = (&waiting.route, waiting.prefill.as_deref());
    let (flow, in_flight) = dispose(vm, &host, route, decision, now);
    let disposition = Disposition::new(&decision, in_flight, waiting.watch.take());
    waiting.disposition.set(Some(disposition));
    Some(Released::Here(host, flow))
}

#[cfg(test)]
mod tests;
