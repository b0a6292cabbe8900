// SPDX-License-Identifier: Apache-2.0
//! VMs that trap when a test tells them to (feature `crash-test`).
//!
//! | request header | who traps |
//! |---|---|
//! | `x-weir-crash: here` | the VM of the request, with the request in it |
//! | `x-weir-crash: owner` | the VM that holds the lease, at its next tick; the request is answered 200 |

use proxy_wasm::types::Action;

use crate::hostcalls::{self, Map};

const HEADER: &str = "x-weir-crash";
/// Set while the owner is to trap.
const OWNER: &str = "weir/crash-test/owner";

pub(crate) fn request() -> Option<Action> {
    let headers = hostcalls::headers(Map::Request).unwrap_or_default();
    match headers.get(HEADER) {
        Some(b"here") => core::arch::wasm32::unreachable(),
        Some(b"owner") => {
            let _ = hostcalls::set_shared(OWNER, &[1], None);
            // At a host it would still be in the VM that dies, if that is this one.
            hostcalls::respond(200, "weir_crash_test", &[], "", 0).ok()?;
            Some(Action::Pause)
        }
        _ => None,
    }
}

pub(crate) fn tick(is_owner: bool) {
    let told = || hostcalls::shared(OWNER).is_some_and(|(value, _)| value == [1]);
    if is_owner && told() {
        // Before the trap: the next owner is to live.
        let _ = hostcalls::set_shared(OWNER, &[0], None);
        core::arch::wasm32::unreachable();
    }
}
