// SPDX-License-Identifier: Apache-2.0
//! Calls to shared data, and what they are answered.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::fake::SharedData;
use crate::lease::Lease;

/// A call of a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Get {
        key: String,
    },
    Set {
        key: String,
        value: Vec<u8>,
        cas: Option<u32>,
    },
}

/// What a VM hears.
#[derive(Clone, Debug, Hash)]
pub(super) enum Answer {
    Got(Option<(Vec<u8>, u32)>),
    Set(bool),
}

/// Shared data that watches over the lease.
#[derive(Clone, Default)]
pub(super) struct Watched {
    pub(super) now: Duration,
    /// A lease that was taken away: by whom, and what it was before and after.
    pub(super) taken_away: Option<(usize, Lease, Option<Lease>)>,
    pub(super) data: SharedData,
}

impl Watched {
    pub(super) fn answer(&mut self, vm: usize, call: &Call) -> Answer {
        match call {
            Call::Get { key } => Answer::Got(self.data.get(key)),
            Call::Set { key, value, cas } => {
                let before = self.data.get(key);
                let before = before.and_then(|(value, _)| Lease::decode(&value));
                let is_set = self.data.set(key, value, *cas);
                if let (true, true, Some(before)) = (is_set, key.ends_with("/owner"), before) {
                    self.check_passing(vm, before, Lease::decode(value));
                }
                Answer::Set(is_set)
            }
        }
    }

    /// The lease passes from a holder that leaves it, is late or has an older configuration.
    fn check_passing(&mut self, vm: usize, before: Lease, after: Option<Lease>) {
        let old = before.holder;
        let may = match after.map(|lease| lease.holder) {
            None => old.vm == id(vm),
            Some(new) => {
                old == new || before.deadline <= self.now || old.generation < new.generation
            }
        };
        if !may {
            self.taken_away = Some((vm, before, after));
        }
    }
}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.data.hash(hasher);
    }
}

/// The identity that a VM draws.
pub(super) fn id(vm: usize) -> u64 {
    (vm as u64 + 1) << 32
}
