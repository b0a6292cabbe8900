// SPDX-License-Identifier: Apache-2.0
//! HTTP calls, gRPC calls and gRPC streams.

use std::time::Duration;

use wasmtime::Linker;

use super::host_function;
use crate::abi::Status;
use crate::callout::{
    Callout, GrpcRequest, HttpCallRequest, OpenCall, OpenHttpCall, Target, target,
};
use crate::guest::{Answer, Failure, Guest};
use crate::headers::Headers;
use crate::state::{After, State};

/// gRPC status of a callout whose cluster does not exist.
const UNAVAILABLE: u32 = 14;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    host_function!(linker, "proxy_http_call" = http_call,
        cluster: u32, cluster_size: u32, headers: u32, headers_size: u32, body: u32, body_size: u32,
        trailers: u32, trailers_size: u32, timeout: i32, token: u32);
    host_function!(linker, "proxy_grpc_call" = grpc_call,
        upstream: u32, upstream_size: u32, service: u32, service_size: u32, method: u32,
        method_size: u32, metadata: u32, metadata_size: u32, message: u32, message_size: u32,
        timeout: u32, token: u32);
    host_function!(linker, "proxy_grpc_stream" = grpc_stream,
        upstream: u32, upstream_size: u32, service: u32, service_size: u32, method: u32,
        method_size: u32, metadata: u32, metadata_size: u32, token: u32);
    host_function!(linker, "proxy_grpc_send" = grpc_send, token: u32, at: u32, size: u32, end: u32);
    host_function!(linker, "proxy_grpc_close" = grpc_close, token: u32);
    host_function!(linker, "proxy_grpc_cancel" = grpc_cancel, token: u32);
    Ok(())
}

/// Bytes in the memory of the module: where, and how many.
type Slice = (u32, u32);

#[expect(clippy::too_many_arguments, reason = "the ABI has them")]
fn http_call(
    guest: &mut Guest,
    cluster: u32,
    cluster_size: u32,
    headers: u32,
    headers_size: u32,
    body: u32,
    body_size: u32,
    trailers: u32,
    trailers_size: u32,
    timeout: i32,
    token: u32,
) -> Answer {
    let request = HttpCallRequest {
        cluster: guest.read_text(cluster, cluster_size)?,
        headers: Headers::deserialize(&guest.read(headers, headers_size)?),
        body: guest.read(body, body_size)?,
        trailers: Headers::deserialize(&guest.read(trailers, trailers_size)?),
        timeout: Duration::from_millis(u64::try_from(timeout).map_err(|_| Status::BadArgument)?),
    };
    guest.write_u32(token, 0)?;
    let complete = [":path", ":method", ":authority"]
        .iter()
        .all(|name| request.headers.get(name).is_some());
    let state = guest.state();
    if !complete || !state.host.upstreams.borrow().contains(&request.cluster) {
        return Err(Status::BadArgument.into());
    }
    let (root, id) = (state.root_id(), state.callouts.next_token(Callout::Http));
    state
        .callouts
        .http
        .insert(id, OpenHttpCall { root, request });
    Ok(guest.write_u32(token, id)?)
}

#[expect(clippy::too_many_arguments, reason = "the ABI has them")]
fn grpc_call(
    guest: &mut Guest,
    upstream: u32,
    upstream_size: u32,
    service: u32,
    service_size: u32,
    method: u32,
    method_size: u32,
    metadata: u32,
    metadata_size: u32,
    message: u32,
    message_size: u32,
    timeout: u32,
    token: u32,
) -> Answer {
    let (service, method) = ((service, service_size), (method, method_size));
    let mut request = grpc_request(
        guest,
        (upstream, upstream_size),
        service,
        method,
        (metadata, metadata_size),
    )?;
    request.timeout = Duration::from_millis(timeout.into());
    let message = guest.read(message, message_size)?;
    let id = grpc_open(guest.state(), Callout::GrpcCall, &request)?;
    let root = guest.state().root_id();
    guest.state().callouts.calls.insert(
        id,
        OpenCall {
            root,
            request,
            message,
        },
    );
    Ok(guest.write_u32(token, id)?)
}

#[expect(clippy::too_many_arguments, reason = "the ABI has them")]
fn grpc_stream(
    guest: &mut Guest,
    upstream: u32,
    upstream_size: u32,
    service: u32,
    service_size: u32,
    method: u32,
    method_size: u32,
    metadata: u32,
    metadata_size: u32,
    token: u32,
) -> Answer {
    let (service, method) = ((service, service_size), (method, method_size));
    let request = grpc_request(
        guest,
        (upstream, upstream_size),
        service,
        method,
        (metadata, metadata_size),
    )?;
    let id = grpc_open(guest.state(), Callout::GrpcStream, &request)?;
    let root = guest.state().root_id();
    guest.state().callouts.open_stream(root, request, id);
    Ok(guest.write_u32(token, id)?)
}

fn grpc_request(
    guest: &mut Guest,
    upstream: Slice,
    service: Slice,
    method: Slice,
    metadata: Slice,
) -> Result<GrpcRequest, Failure> {
    let upstream = guest.read(upstream.0, upstream.1)?;
    let cluster = match target(&upstream) {
        Target::Cluster(cluster) => cluster,
        Target::Unparsable => {
            let name = String::from_utf8_lossy(&upstream).into_owned();
            let known = guest.state().host.upstreams.borrow().contains(&name);
            known.then_some(name).ok_or(Status::ParseFailure)?
        }
        Target::Nothing => {
            let why =
                "Envoy aborts here: the gRPC service is a message that names no envoy_grpc cluster";
            return Err(Failure::Trap(wasmtime::Error::msg(why)));
        }
    };
    Ok(GrpcRequest {
        cluster,
        service: guest.read_text(service.0, service.1)?,
        method: guest.read_text(method.0, method.1)?,
        initial_metadata: Headers::deserialize(&guest.read(metadata.0, metadata.1)?),
        timeout: Duration::ZERO,
    })
}

/// A token, if the cluster exists. If not, Envoy also reports the close of a token that the module
/// was never given, once the callback has returned.
fn grpc_open(state: &mut State, kind: Callout, request: &GrpcRequest) -> Result<u32, Status> {
    let token = state.callouts.next_token(kind);
    if state.host.upstreams.borrow().contains(&request.cluster) {
        return Ok(token);
    }
    let (root, message) = (state.root_id(), "Cluster not available".to_owned());
    state.after.push_back(After::GrpcClosed {
        root,
        token,
        status: UNAVAILABLE,
        message,
    });
    Err(Status::InternalFailure)
}

fn grpc_send(guest: &mut Guest, token: u32, at: u32, size: u32, end: u32) -> Answer {
    let message = guest.read(at, size)?;
    if Callout::of(token) != Some(Callout::GrpcStream) {
        return Err(Status::BadArgument.into());
    }
    let stream = guest
        .state()
        .callouts
        .streams
        .get_mut(&token)
        .ok_or(Status::NotFound)?;
    stream.sent.push(message);
    stream.half_closed |= end != 0;
    Ok(())
}

fn grpc_close(guest: &mut Guest, token: u32) -> Answer {
    let callouts = &mut guest.state().callouts;
    if Callout::of(token) != Some(Callout::GrpcStream) {
        return grpc_cancel(guest, token);
    }
    let stream = callouts.streams.get_mut(&token).ok_or(Status::NotFound)?;
    stream.half_closed = true;
    if stream.remote_closed {
        callouts.streams.remove(&token);
    }
    Ok(())
}

fn grpc_cancel(guest: &mut Guest, token: u32) -> Answer {
    let callouts = &mut guest.state().callouts;
    let known = match Callout::of(token) {
        Some(Callout::GrpcCall) => callouts.calls.remove(&token).is_some(),
        Some(Callout::GrpcStream) => callouts.streams.remove(&token).is_some(),
        _ => return Err(Status::BadArgument.into()),
    };
    if known {
        Ok(())
    } else {
        Err(Status::NotFound.into())
    }
}
