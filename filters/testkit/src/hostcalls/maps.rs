// SPDX-License-Identifier: Apache-2.0
//! Header maps and buffers.

use wasmtime::Linker;

use super::host_function;
use crate::abi::{BufferType, Direction, MapType, Status};
use crate::guest::{Answer, Guest};
use crate::headers::Headers;
use crate::state::State;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    host_function!(linker, "proxy_get_header_map_pairs" = get_pairs, map: u32, at: u32, size: u32);
    host_function!(linker, "proxy_set_header_map_pairs" = set_pairs, map: u32, at: u32, size: u32);
    host_function!(linker, "proxy_get_header_map_size" = get_size, map: u32, size: u32);
    host_function!(linker, "proxy_get_header_map_value" = get_value,
        map: u32, name: u32, name_size: u32, value: u32, value_size: u32);
    host_function!(linker, "proxy_add_header_map_value" = add_value,
        map: u32, name: u32, name_size: u32, value: u32, value_size: u32);
    host_function!(linker, "proxy_replace_header_map_value" = replace_value,
        map: u32, name: u32, name_size: u32, value: u32, value_size: u32);
    host_function!(linker, "proxy_remove_header_map_value" = remove_value,
        map: u32, name: u32, name_size: u32);
    host_function!(linker, "proxy_get_buffer_bytes" = get_buffer,
        buffer: u32, start: u32, length: u32, at: u32, size: u32);
    host_function!(linker, "proxy_get_buffer_status" = get_buffer_status,
        buffer: u32, length: u32, flags: u32);
    host_function!(linker, "proxy_set_buffer_bytes" = set_buffer,
        buffer: u32, start: u32, length: u32, at: u32, size: u32);
    Ok(())
}

/// A map that the module may read now. What does not exist is `BadArgument`, not `NotFound`.
fn readable(state: &State, map: MapType) -> Result<&Headers, Status> {
    let received = &state.received;
    let found = match map {
        MapType::Headers(_) | MapType::Trailers(_) => {
            return state.stream().ok_or(Status::BadArgument)?.map(map);
        }
        MapType::GrpcInitialMetadata => received.initial_metadata.as_ref(),
        MapType::GrpcTrailingMetadata => received.trailing_metadata.as_ref(),
        MapType::CallHeaders => received.http.as_ref().map(|answer| &answer.headers),
        MapType::CallTrailers => received.http.as_ref().map(|answer| &answer.trailers),
    };
    found.ok_or(Status::BadArgument)
}

fn writable(state: &mut State, map: MapType) -> Result<&mut Headers, Status> {
    state.stream_mut().ok_or(Status::BadArgument)?.map_mut(map)
}

/// All headers; a map that does not exist is empty here, unlike everywhere else.
fn get_pairs(guest: &mut Guest, map: u32, at: u32, size: u32) -> Answer {
    let map = MapType::from_abi(map)?;
    let bytes = readable(guest.state(), map)
        .map(Headers::serialize)
        .unwrap_or_default();
    guest.give(&bytes, at, size)
}

fn set_pairs(guest: &mut Guest, map: u32, at: u32, size: u32) -> Answer {
    let map = MapType::from_abi(map)?;
    let headers = Headers::deserialize(&guest.read(at, size)?);
    *writable(guest.state(), map)? = headers;
    Ok(())
}

fn get_size(guest: &mut Guest, map: u32, size: u32) -> Answer {
    let map = MapType::from_abi(map)?;
    let headers = writable(guest.state(), map)?;
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    Ok(guest.write_u32(size, bytes as u32)?)
}

fn get_value(guest: &mut Guest, map: u32, name: u32, name_size: u32, at: u32, size: u32) -> Answer {
    let map = MapType::from_abi(map)?;
    let name = guest.read_text(name, name_size)?;
    let headers = readable(guest.state(), map)?;
    let value = headers.get_bytes(&name).ok_or(Status::NotFound)?.to_vec();
    guest.give(&value, at, size)
}

fn add_value(guest: &mut Guest, map: u32, name: u32, name_size: u32, at: u32, size: u32) -> Answer {
    let map = MapType::from_abi(map)?;
    let (name, value) = (guest.read_text(name, name_size)?, guest.read(at, size)?);
    writable(guest.state(), map)?.add(&name, &value);
    Ok(())
}

fn replace_value(
    guest: &mut Guest,
    map: u32,
    name: u32,
    name_size: u32,
    at: u32,
    size: u32,
) -> Answer {
    let map = MapType::from_abi(map)?;
    let (name, value) = (guest.read_text(name, name_size)?, guest.read(at, size)?);
    writable(guest.state(), map)?.set(&name, &value);
    Ok(())
}

fn remove_value(guest: &mut Guest, map: u32, name: u32, name_size: u32) -> Answer {
    let map = MapType::from_abi(map)?;
    let name = guest.read_text(name, name_size)?;
    writable(guest.state(), map)?.remove(&name);
    Ok(())
}

/// The bytes of a buffer. A body or message that is not there is empty; the others are `NotFound`.
fn buffer(state: &State, buffer: BufferType) -> Result<&[u8], Status> {
    Ok(match buffer {
        BufferType::Body(direction) => {
            let half = state.stream().map(|stream| match direction {
                Direction::Request => &stream.request,
                Direction::Response => &stream.response,
            });
            half.and_then(|half| half.body_shown.as_deref())
                .unwrap_or_default()
        }
        BufferType::GrpcMessage => state.received.message.as_deref().unwrap_or_default(),
        BufferType::CallBody => &state.received.http.as_ref().ok_or(Status::NotFound)?.body,
        BufferType::VmConfiguration => &state.settings.vm_configuration,
        BufferType::PluginConfiguration => state
            .plugin_configuration
            .as_deref()
            .ok_or(Status::NotFound)?,
        BufferType::CallData => &[],
    })
}

fn get_buffer(guest: &mut Guest, kind: u32, start: u32, length: u32, at: u32, size: u32) -> Answer {
    let kind = BufferType::from_abi(kind)?;
    let bytes = buffer(guest.state(), kind)?;
    let end = bytes.len().min(start as usize + length as usize);
    match bytes.get(start as usize..end).map(<[u8]>::to_vec) {
        Some(part) if !part.is_empty() => guest.give(&part, at, size),
        // Nothing to copy: Envoy leaves the module's pointer and size as they are.
        _ => Ok(()),
    }
}

fn get_buffer_status(guest: &mut Guest, kind: u32, length: u32, flags: u32) -> Answer {
    let kind = BufferType::from_abi(kind)?;
    let bytes = buffer(guest.state(), kind)?.len() as u32;
    guest.write_u32(length, bytes)?;
    Ok(guest.write_u32(flags, 0)?)
}

fn set_buffer(guest: &mut Guest, kind: u32, start: u32, length: u32, at: u32, size: u32) -> Answer {
    let BufferType::Body(direction) = BufferType::from_abi(kind)? else {
        return Err(Status::BadArgument.into());
    };
    let data = guest.read(at, size)?;
    let stream = guest.state().stream_mut().ok_or(Status::BadArgument)?;
    Ok(stream
        .half(direction)
        .replace_body(start as usize, length as usize, &data)?)
}
