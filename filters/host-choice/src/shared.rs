// SPDX-License-Identifier: Apache-2.0
//! What the VMs of a proxy share, and in which keys. Nothing can be deleted there, so the set of keys is
//! small and fixed; every key names the schema's version, because data outlives a new version of the module.
//!
//! | key | value | writer |
//! |---|---|---|
//! | `process` | drawn once in the life of the process | the first VM |
//! | `owner` | the [`Lease`] | its holder, by compare-and-swap |
//! | `generation` | hash and generation of each configuration ([`Generations`]) | any root, by compare-and-swap |
//! | `slots` | which VM has which slot | any VM, by compare-and-swap |
//! | `vm/<slot>` | the VM's [record](crate::stored) | that VM |
//! | `index` | name and version of every resource ([`Index`]) | the owner, by compare-and-swap |
//! | `table/<name>`, `shard/<name>` | when it was received, then the resource | the owner, by compare-and-swap |
//!
//! Where VMs can hand each other decoded [contents](crate::contents), of a shard only epoch and version are there.

use std::time::Duration;

use prost::Message;
use weir_tables::Meta;
use weir_tables::v1::{ClusterRecord, VmRecord};

use crate::host::Host;
use crate::index::{Index, Kind};
use crate::lease::{Generations, Lease};
use crate::stored::{self, Head};

const PREFIX: &str = "weir/1/";
/// VMs of one proxy: its worker threads and the main thread.
const MAX_SLOTS: usize = 129;
/// The number of a key that was never written. No write gets it: the host counts writes from 1.
const UNWRITTEN: u32 = u32::MAX;
/// Lost races for one key before giving up until the next tick.
const ATTEMPTS: usize = 16;

fn key(name: &str) -> String {
    [PREFIX, name].concat()
}

/// Creates the keys that are written by compare-and-swap: only a key that exists has a number to compare.
///
/// Every VM does, and several may at once: one that is there already is left alone, as its VM may hold the lease.
pub(crate) fn create(host: &impl Host) {
    for name in ["owner", "generation", "slots", "index"] {
        let _ = host.set_shared(&key(name), &[0], Some(UNWRITTEN));
    }
    let drawn = host.random().to_le_bytes();
    let _ = host.set_shared(&key("process"), &drawn, Some(UNWRITTEN));
}

/// What tells this process from another one of the same proxy.
pub(crate) fn process(host: &impl Host) -> String {
    let drawn = host.shared(&key("process"));
    let drawn = drawn.iter().flat_map(|(drawn, _)| drawn.iter());
    drawn.map(|byte| format!("{byte:02x}")).collect()
}

/// Applies `change` to the value until nobody else has written in between. The change returns the new
/// value, or none to leave it, and a result.
fn update<T>(
    host: &impl Host,
    name: &str,
    mut change: impl FnMut(&[u8]) -> (Option<Vec<u8>>, T),
) -> Option<T> {
    let key = key(name);
    for _ in 0..ATTEMPTS {
        let (value, cas) = host.shared(&key)?;
        let (new, result) = change(&value);
        let Some(new) = new else { return Some(result) };
        if host.set_shared(&key, &new, Some(cas)) == Ok(true) {
            return Some(result);
        }
    }
    None
}

/// The generation of the configuration with this hash; see [`Generations::of`].
pub(crate) fn generation(host: &impl Host, configuration: u64, again: bool) -> u64 {
    let generation = update(host, "generation", |value| {
        let mut generations = Generations::decode(value);
        let (generation, is_new) = generations.of(configuration, again);
        (is_new.then(|| generations.encode()), generation)
    });
    generation.unwrap_or(1)
}

/// The lease with its compare-and-swap number.
pub(crate) fn lease(host: &impl Host) -> Option<(Option<Lease>, u32)> {
    let (value, cas) = host.shared(&key("owner"))?;
    Some((Lease::decode(&value), cas))
}

/// Writes the lease (none: vacant) unless somebody else has; says whether it did.
pub(crate) fn set_lease(host: &impl Host, lease: Option<Lease>, cas: u32) -> bool {
    let value = lease.map_or(vec![0], |lease| lease.encode().to_vec());
    host.set_shared(&key("owner"), &value, Some(cas)) == Ok(true)
}

/// Claims a slot for the VM: its own, one whose VM is dead, or a new one.
pub(crate) fn claim_slot(host: &impl Host, vm: u64, now: Duration) -> Option<u32> {
    let claim = |value: &[u8]| {
        let mut slots: Vec<u64> = value
            .chunks_exact(8)
            .filter_map(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)))
            .collect();
        let dead = |slot: u32, holder: u64| {
            if holder == 0 {
                return true;
            }
            let head = record::<Head>(host, slot, None).and_then(|(head, _)| head);
            head.is_some_and(|head| head.epoch == holder && expired(head.deadline_ns, now))
        };
        let free = (0u32..)
            .zip(&slots)
            .find(|(slot, holder)| **holder == vm || dead(*slot, **holder));
        let slot = free.map_or(slots.len() as u32, |(slot, _)| slot);
        if slot as usize == slots.len() {
            slots.push(0);
        }
        match slots.get_mut(slot as usize) {
            Some(holder) if (slot as usize) < MAX_SLOTS => *holder = vm,
            _ => return (None, None),
        }
        (
            Some(
                slots
                    .iter()
                    .flat_map(|holder| holder.to_le_bytes())
                    .collect(),
            ),
            Some(slot),
        )
    };
    update(host, "slots", claim).flatten()
}

/// The VMs that have a slot, by slot.
pub(crate) fn slots(host: &impl Host) -> Vec<u64> {
    let value = host.shared(&key("slots"));
    let value = value.as_ref().map_or(&[][..], |(value, _)| value);
    value
        .chunks_exact(8)
        .filter_map(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)))
        .collect()
}

/// Whether a record's VM has not renewed it in time.
pub(crate) fn expired(deadline_ns: u64, now: Duration) -> bool {
    Duration::from_nanos(deadline_ns) < now
}

/// The number that changes with the record in a slot, and of the record what this message has, unless that number is
/// `seen`.
pub(crate) fn record<M: Message + Default>(
    host: &impl Host,
    slot: u32,
    seen: Option<u32>,
) -> Option<(Option<M>, u32)> {
    let (value, cas) = host.shared(&record_key(slot))?;
    if seen == Some(cas) {
        return Some((None, cas));
    }
    Some((Some(M::decode(&*value).ok()?), cas))
}

/// All of the record in a slot.
pub(crate) fn whole_record(host: &impl Host, slot: u32) -> Option<VmRecord> {
    let (value, _) = host.shared(&record_key(slot))?;
    stored::decode(&value)
}

/// Writes the VM's own record, with the bytes of what it told of keys earlier.
pub(crate) fn set_record(host: &impl Host, slot: u32, record: &VmRecord, earlier: &[u8]) {
    let value = stored::encode(record, earlier);
    let _ = host.set_shared(&record_key(slot), &value, None);
}

/// Where the record in a slot is.
pub(crate) fn record_key(slot: u32) -> String {
    key(&format!("vm/{slot}"))
}

/// Writes a record again, as of now, unless its VM does in the meantime. `keep` brings a cluster up to date, and says
/// whether it stays.
pub(crate) fn renew_record(
    host: &impl Host,
    key: &str,
    keep: impl FnMut(&mut ClusterRecord) -> bool,
) {
    let Some((value, cas)) = host.shared(key) else {
        return;
    };
    let Some((mut record, earlier)) = stored::split(&value) else {
        return;
    };
    let lives = record.deadline_ns.saturating_sub(record.published_ns);
    let now = host.now().as_nanos() as u64;
    let passed = now.saturating_sub(std::mem::replace(&mut record.published_ns, now));
    record.deadline_ns = now + lives;
    // What happened stays where it was. Rounded up: however often it is renewed, nothing looks newer than it is.
    let passed = u32::try_from(passed.div_ceil(1_000_000)).unwrap_or(u32::MAX);
    record.clusters.retain_mut(keep);
    for cluster in &mut record.clusters {
        let assignments = cluster.assignments.iter_mut().map(|one| &mut one.age_ms);
        let spent = cluster.spent.iter_mut().map(|one| &mut one.age_ms);
        let receipts = cluster.receipts.iter_mut().map(|one| &mut one.age_ms);
        let loads = cluster.hosts.iter_mut().flat_map(|host| &mut host.load);
        let loads = loads.map(|load| &mut load.age_ms);
        for age in assignments.chain(spent).chain(receipts).chain(loads) {
            *age = age.saturating_add(passed);
        }
    }
    let value = stored::encode(&record, &earlier.encode_to_vec());
    let _ = host.set_shared(key, &value, Some(cas));
}

/// The index and the number that changes with it, unless that number is `seen`.
pub(crate) fn index(host: &impl Host, seen: Option<u32>) -> Option<(Index, u32)> {
    let (value, cas) = host.shared(&key("index"))?;
    if seen == Some(cas) {
        return None;
    }
    Some((Index::decode(&*value).unwrap_or_default(), cas))
}

/// Changes the index: an owner that has just lost its lease may be writing too.
pub(crate) fn update_index(host: &impl Host, change: impl Fn(&mut Index)) {
    update(host, "index", |value| {
        let mut index = Index::decode(value).unwrap_or_default();
        change(&mut index);
        (Some(index.encode_to_vec()), ())
    });
}

/// Reads a resource: when it was received, and its body.
pub(crate) fn resource<T>(
    host: &impl Host,
    kind: Kind,
    name: &str,
    read: impl FnOnce(Duration, &[u8]) -> T,
) -> Option<T> {
    let (value, _) = host.shared(&key(&resource_key(kind, name)))?;
    let (received, body) = value.split_first_chunk::<8>()?;
    let received = Duration::from_nanos(u64::from_le_bytes(*received));
    Some(read(received, body))
}

/// Writes a resource, without a body to leave nothing behind but its key, where it may replace the build that is
/// there. Says whether it did.
///
/// Two VMs may be writing: one that has just lost its lease, and the one that has it now.
pub(crate) fn set_resource(
    host: &impl Host,
    kind: Kind,
    name: &str,
    received: Duration,
    body: &[u8],
    may_replace: impl Fn(Meta) -> bool,
) -> bool {
    let key = key(&resource_key(kind, name));
    let received = (received.as_nanos() as u64).to_le_bytes();
    let value = [&received, body].concat();
    for _ in 0..ATTEMPTS {
        let there = host.shared(&key);
        let cas = there.as_ref().map_or(UNWRITTEN, |(_, cas)| *cas);
        let there = there.as_ref().and_then(|(value, _)| value.get(8..));
        let there = there.filter(|body| !body.is_empty());
        if there
            .and_then(|body| kind.meta(body))
            .is_some_and(|there| !may_replace(there))
        {
            return false;
        }
        match host.set_shared(&key, &value, Some(cas)) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(_) => return false,
        }
    }
    false
}

fn resource_key(kind: Kind, name: &str) -> String {
    match kind {
        Kind::Table => ["table/", name].concat(),
        Kind::Shard => ["shard/", name].concat(),
    }
}

#[cfg(test)]
mod tests;
