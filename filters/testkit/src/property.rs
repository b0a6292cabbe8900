// SPDX-License-Identifier: Apache-2.0
//! Properties: what the test set, what the module set, and a few that follow from the request.

use crate::headers::Headers;
use crate::state::State;

/// Joins the parts of a path as the ABI does.
pub(crate) fn path(parts: &[&str]) -> Vec<u8> {
    parts.join("\0").into_bytes()
}

/// The value of a property: filter state set by the module, then what the test set on the stream,
/// then on the VM, then what follows from the request itself.
pub(crate) fn get(state: &State, path: &[u8]) -> Option<Vec<u8>> {
    let stream = state.stream();
    // Envoy looks filter state up by the first part of a path alone: what a module sets under a path
    // of several parts, it cannot read back.
    let set_by_module = stream
        .filter(|_| !path.contains(&0))
        .and_then(|s| s.filter_state.get(path));
    let on_stream = set_by_module.or_else(|| stream?.properties.get(path));
    on_stream
        .or_else(|| state.settings.properties.get(path))
        .cloned()
        .or_else(|| derived(state, path))
}

fn derived(state: &State, path: &[u8]) -> Option<Vec<u8>> {
    let parts: Vec<&str> = std::str::from_utf8(path).ok()?.split('\0').collect();
    let request = || {
        state
            .stream()
            .and_then(|stream| stream.request.headers.as_ref())
    };
    let response = || {
        state
            .stream()
            .and_then(|stream| stream.response.headers.as_ref())
    };
    let header = |headers: Option<&Headers>, name: &str| Some(headers?.get_bytes(name)?.to_vec());
    match parts.as_slice() {
        ["plugin_vm_id"] => Some(state.settings.vm_id.clone().into_bytes()),
        ["request", "path"] => header(request(), ":path"),
        ["request", "url_path"] => {
            let path = header(request(), ":path")?;
            Some(path.split(|byte| *byte == b'?').next()?.to_vec())
        }
        ["request", "method"] => header(request(), ":method"),
        ["request", "host"] => header(request(), ":authority"),
        ["request", "scheme"] => header(request(), ":scheme"),
        ["request", "headers", name] => header(request(), name),
        ["response", "headers", name] => header(response(), name),
        // Numbers are 64 bits, little endian.
        ["response", "code"] => {
            let status: i64 = response()?.get(":status")?.parse().ok()?;
            Some(status.to_le_bytes().to_vec())
        }
        _ => None,
    }
}
