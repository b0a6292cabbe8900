// SPDX-License-Identifier: Apache-2.0
//! VMs that panic when a test tells them to (feature `crash-test`). A panic traps a VM of WebAssembly; the dynamic
//! module catches it.
//!
//! | request header | who panics |
//! |---|---|
//! | `x-weir-crash: here` | the VM of the request, with the request in it |
//! | `x-weir-crash: owner` | the VM that holds the lease, at its next tick; the request is answered 200 |

use crate::disposition::Flow;
use crate::host::{Host, Map, RequestHost, Response};

const HEADER: &str = "x-weir-crash";
/// Set while the owner is to trap.
const OWNER: &str = "weir/crash-test/owner";

/// What a request asks for; none: it is an ordinary one.
pub(crate) fn request(vm: &impl Host, host: &impl RequestHost) -> Option<Flow> {
    let headers = host.headers(Map::Request).unwrap_or_default();
    match headers.get(HEADER) {
        Some(b"here") => panic(),
        Some(b"owner") => {
            let _ = vm.set_shared(OWNER, &[1], None);
            // At a host it would still be in the VM that dies, if that is this one.
            Some(Flow::Respond(Box::new(Response {
                status: 200,
                grpc_status: 0,
                details: "weir_crash_test",
                headers: Vec::new(),
                body: String::new(),
            })))
        }
        _ => None,
    }
}

pub(crate) fn tick(vm: &impl Host, is_owner: bool) {
    let told = || vm.shared(OWNER).is_some_and(|(value, _)| *value == [1]);
    if is_owner && told() {
        // Before the panic: the next owner is to live.
        let _ = vm.set_shared(OWNER, &[0], None);
        panic();
    }
}

#[allow(clippy::panic)] // That is what it is for, and nothing that is shipped has it.
fn panic() -> ! {
    panic!("a test wants it")
}
