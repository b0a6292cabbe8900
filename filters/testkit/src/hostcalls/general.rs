// SPDX-License-Identifier: Apache-2.0
//! Logs, time, contexts, streams, local replies, properties and foreign functions.

use std::time::Duration;

use wasmtime::Linker;

use super::host_function;
use crate::abi::{Direction, LogLevel, Status};
use crate::guest::{Answer, Guest};
use crate::headers::Headers;
use crate::state::{After, State};
use crate::stream::LocalReply;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    host_function!(linker, "proxy_log" = log, level: u32, at: u32, size: u32);
    host_function!(linker, "proxy_get_log_level" = get_log_level, level: u32);
    host_function!(linker, "proxy_get_current_time_nanoseconds" = get_current_time, time: u32);
    host_function!(linker, "proxy_set_tick_period_milliseconds" = set_tick_period, period: u32);
    host_function!(linker, "proxy_set_effective_context" = set_effective_context, context: u32);
    host_function!(linker, "proxy_done" = done,);
    host_function!(linker, "proxy_continue_stream" = continue_stream, kind: u32);
    host_function!(linker, "proxy_close_stream" = close_stream, kind: u32);
    host_function!(linker, "proxy_send_local_response" = send_local_response,
        status: u32, details: u32, details_size: u32, body: u32, body_size: u32,
        headers: u32, headers_size: u32, grpc_status: i32);
    host_function!(linker, "proxy_get_property" = get_property,
        path: u32, path_size: u32, value: u32, value_size: u32);
    host_function!(linker, "proxy_set_property" = set_property,
        path: u32, path_size: u32, value: u32, value_size: u32);
    host_function!(linker, "proxy_get_status" = get_status, code: u32, message: u32, size: u32);
    host_function!(linker, "proxy_call_foreign_function" = call_foreign_function,
        name: u32, name_size: u32, arguments: u32, arguments_size: u32, result: u32, result_size: u32);
    Ok(())
}

fn log(guest: &mut Guest, level: u32, at: u32, size: u32) -> Answer {
    let level = LogLevel::from_abi(level).ok_or(Status::BadArgument)?;
    let message = guest.read(at, size)?;
    guest.state().log(level, &message);
    Ok(())
}

fn get_log_level(guest: &mut Guest, level: u32) -> Answer {
    let current = guest.state().settings.log_level as u32;
    Ok(guest.write_u32(level, current)?)
}

fn get_current_time(guest: &mut Guest, time: u32) -> Answer {
    let now = guest.state().host.clock.wall_nanos();
    Ok(guest.write_u64(time, now)?)
}

fn set_tick_period(guest: &mut Guest, period: u32) -> Answer {
    let state = guest.state();
    let (root, now) = (state.root_id(), state.host.clock.monotonic());
    if let Some(root) = state.roots.get_mut(&root) {
        root.tick_period = (period > 0).then(|| Duration::from_millis(period.into()));
        root.next_tick = now + root.tick_period.unwrap_or_default();
    }
    Ok(())
}

fn set_effective_context(guest: &mut Guest, context: u32) -> Answer {
    let state = guest.state();
    if !state.exists(context) {
        return Err(Status::BadArgument.into());
    }
    state.effective = Some(context);
    Ok(())
}

fn done(guest: &mut Guest) -> Answer {
    let state = guest.state();
    let root = state.root_id();
    if !state.roots.get(&root).is_some_and(|root| root.finishing) {
        return Err(Status::NotFound.into());
    }
    state.after.push_back(After::DeleteRoot(root));
    Ok(())
}

fn continue_stream(guest: &mut Guest, kind: u32) -> Answer {
    let direction = match kind {
        0 => Direction::Request,
        1 => Direction::Response,
        2 => return Ok(()),
        3 => return Err(Status::Unimplemented.into()),
        _ => return Err(Status::BadArgument.into()),
    };
    let state = guest.state();
    let context = state.context();
    if let Some(stream) = state.streams.get_mut(&context) {
        // Envoy takes the request maps out of reach at once, whichever direction is resumed.
        stream.request.headers_shown = false;
        stream.request.trailers_shown = false;
        state.after.push_back(After::Resume(context, direction));
    }
    Ok(())
}

fn close_stream(guest: &mut Guest, kind: u32) -> Answer {
    if kind > 3 {
        return Err(Status::BadArgument.into());
    }
    let state = guest.state();
    let context = state.context();
    if kind < 2 && state.streams.contains_key(&context) {
        state.after.push_back(After::Reset(context));
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the ABI has them")]
fn send_local_response(
    guest: &mut Guest,
    status: u32,
    details: u32,
    details_size: u32,
    body: u32,
    body_size: u32,
    headers: u32,
    headers_size: u32,
    grpc_status: i32,
) -> Answer {
    let reply = LocalReply {
        status,
        headers: Headers::deserialize(&guest.read(headers, headers_size)?),
        body: guest.read(body, body_size)?,
        grpc_status: u32::try_from(grpc_status).ok().filter(|code| *code <= 16),
        details: guest.read_text(details, details_size)?,
    };
    let state = guest.state();
    let context = state.context();
    if state.streams.contains_key(&context) {
        state.after.push_back(After::Reply(context, reply));
    }
    state.answered = true;
    Ok(())
}

fn get_property(
    guest: &mut Guest,
    path: u32,
    path_size: u32,
    value: u32,
    value_size: u32,
) -> Answer {
    let path = guest.read(path, path_size)?;
    let found = crate::property::get(guest.state(), &path).ok_or(Status::NotFound)?;
    guest.give(&found, value, value_size)
}

fn set_property(
    guest: &mut Guest,
    path: u32,
    path_size: u32,
    value: u32,
    value_size: u32,
) -> Answer {
    let (path, value) = (guest.read(path, path_size)?, guest.read(value, value_size)?);
    // Only a stream has filter state.
    let stream = guest.state().stream_mut().ok_or(Status::NotFound)?;
    stream.filter_state.insert(path, value);
    Ok(())
}

fn get_status(guest: &mut Guest, code: u32, message: u32, size: u32) -> Answer {
    let received = &guest.state().received;
    let (status, text) = (received.status, received.status_message.clone());
    guest.write_u32(code, status)?;
    guest.give(text.as_bytes(), message, size)
}

fn call_foreign_function(
    guest: &mut Guest,
    name: u32,
    name_size: u32,
    arguments: u32,
    arguments_size: u32,
    result: u32,
    result_size: u32,
) -> Answer {
    let name = guest.read_text(name, name_size)?;
    let arguments = guest.read(arguments, arguments_size)?;
    let function = guest
        .state()
        .host
        .foreign_functions
        .borrow()
        .get(&name)
        .cloned();
    let answer = function.ok_or(Status::NotFound)?(&arguments)?;
    guest.give(&answer, result, result_size)
}
