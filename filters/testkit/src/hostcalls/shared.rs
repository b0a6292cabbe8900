// SPDX-License-Identifier: Apache-2.0
//! Shared data, shared queues and metrics.

use wasmtime::Linker;

use super::host_function;
use crate::guest::{Answer, Guest};
use crate::metrics::Kind;
use crate::state::State;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    host_function!(linker, "proxy_get_shared_data" = get_data,
        key: u32, key_size: u32, value: u32, value_size: u32, cas: u32);
    host_function!(linker, "proxy_set_shared_data" = set_data,
        key: u32, key_size: u32, value: u32, value_size: u32, cas: u32);
    host_function!(linker, "proxy_register_shared_queue" = register_queue,
        name: u32, name_size: u32, token: u32);
    host_function!(linker, "proxy_resolve_shared_queue" = resolve_queue,
        vm_id: u32, vm_id_size: u32, name: u32, name_size: u32, token: u32);
    host_function!(linker, "proxy_enqueue_shared_queue" = enqueue, token: u32, at: u32, size: u32);
    host_function!(linker, "proxy_dequeue_shared_queue" = dequeue, token: u32, at: u32, size: u32);
    host_function!(linker, "proxy_define_metric" = define_metric,
        kind: u32, name: u32, name_size: u32, id: u32);
    host_function!(linker, "proxy_increment_metric" = increment_metric, id: u32, by: i64);
    host_function!(linker, "proxy_record_metric" = record_metric, id: u32, value: u64);
    host_function!(linker, "proxy_get_metric" = get_metric, id: u32, value: u32);
    Ok(())
}

fn get_data(guest: &mut Guest, key: u32, key_size: u32, at: u32, size: u32, cas: u32) -> Answer {
    let key = guest.read(key, key_size)?;
    let state = guest.state();
    let (value, current) = state
        .host
        .shared_data
        .borrow()
        .get(&state.settings.vm_id, &key)?;
    guest.give(&value, at, size)?;
    Ok(guest.write_u32(cas, current)?)
}

fn set_data(guest: &mut Guest, key: u32, key_size: u32, at: u32, size: u32, cas: u32) -> Answer {
    let (key, value) = (guest.read(key, key_size)?, guest.read(at, size)?);
    let state = guest.state();
    Ok(state
        .host
        .shared_data
        .borrow_mut()
        .set(&state.settings.vm_id, &key, value, cas)?)
}

fn register_queue(guest: &mut Guest, name: u32, name_size: u32, token: u32) -> Answer {
    let name = guest.read_text(name, name_size)?;
    let state = guest.state();
    let (vm, root) = (state.vm, state.root_id());
    let queue = state
        .host
        .queues
        .borrow_mut()
        .register(&state.settings.vm_id, &name, vm, root);
    Ok(guest.write_u32(token, queue)?)
}

fn resolve_queue(
    guest: &mut Guest,
    vm_id: u32,
    vm_id_size: u32,
    name: u32,
    name_size: u32,
    token: u32,
) -> Answer {
    let mut vm_id = guest.read_text(vm_id, vm_id_size)?;
    let name = guest.read_text(name, name_size)?;
    let state = guest.state();
    if vm_id.is_empty() {
        vm_id.clone_from(&state.settings.vm_id);
    }
    let queue = state.host.queues.borrow().resolve(&vm_id, &name)?;
    Ok(guest.write_u32(token, queue)?)
}

fn enqueue(guest: &mut Guest, token: u32, at: u32, size: u32) -> Answer {
    let item = guest.read(at, size)?;
    Ok(guest
        .state()
        .host
        .queues
        .borrow_mut()
        .enqueue(token, item)?)
}

fn dequeue(guest: &mut Guest, token: u32, at: u32, size: u32) -> Answer {
    let item = guest.state().host.queues.borrow_mut().dequeue(token)?;
    guest.give(&item, at, size)
}

fn define_metric(guest: &mut Guest, kind: u32, name: u32, name_size: u32, id: u32) -> Answer {
    let name = guest.read_text(name, name_size)?;
    let kind = Kind::from_abi(kind)?;
    let state = guest.state();
    let defined = state.metric_ids.define(&state.host.metrics, kind, &name);
    Ok(guest.write_u32(id, defined)?)
}

fn increment_metric(guest: &mut Guest, id: u32, by: i64) -> Answer {
    let state = guest.state();
    Ok(state.metric_ids.increment(&state.host.metrics, id, by)?)
}

fn record_metric(guest: &mut Guest, id: u32, value: u64) -> Answer {
    let state = guest.state();
    Ok(state.metric_ids.record(&state.host.metrics, id, value)?)
}

fn get_metric(guest: &mut Guest, id: u32, value: u32) -> Answer {
    let state = guest.state();
    let current = state.metric_ids.get(&state.host.metrics, id)?;
    Ok(guest.write_u64(value, current)?)
}
