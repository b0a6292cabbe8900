// SPDX-License-Identifier: Apache-2.0
//! Ends calls that are over without an event: those that were jumped out of by a thread that has not been in a hot
//! function since, and those whose return the kernel does not report.
//!
//! A call can return while its return address is on the stack, or the address that the kernel puts in its place,
//! which is in the mapping `[uprobes]`. Only x86-64 has it on the stack.

use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::kernel::Kernel;
use crate::memory::Memory;

/// Younger calls may still be on their way: what is read of a thread is not read at once.
const YOUNGEST: Duration = Duration::from_secs(1);

/// Looks at calls that have not ended.
#[derive(Default)]
pub(crate) struct Sweep {
    /// Of each process that was in a call at the last look: reading it anew takes long where there are many.
    mappings: HashMap<u32, Range<u64>>,
}

impl Sweep {
    pub(crate) fn look(&mut self, kernel: &Kernel, memory: &Memory) {
        if cfg!(not(target_arch = "x86_64")) {
            return;
        }
        let before = std::mem::take(&mut self.mappings);
        for call in memory.running() {
            if now().saturating_sub(call.since) < YOUNGEST.as_nanos() as u64 {
                continue;
            }
            let process = call.owner.pid;
            let Some((stack, back)) = kernel.entered(call.owner.tid, call.function) else {
                continue;
            };
            let can_return = match back {
                Some(back) => back..back + 1,
                None => {
                    let known = self
                        .mappings
                        .get(&process)
                        .or(before.get(&process))
                        .cloned();
                    let Some(mapping) = known.or_else(|| mapping(process)) else {
                        continue;
                    };
                    self.mappings.insert(process, mapping.clone());
                    mapping
                }
            };
            if word(process, stack).is_some_and(|address| !can_return.contains(&address)) {
                memory.end(&call);
            }
        }
    }
}

/// `CLOCK_MONOTONIC`, as the kernel side has it.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn word(process: u32, address: u64) -> Option<u64> {
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let mut bytes = [0; 8];
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

fn mapping(process: u32) -> Option<Range<u64>> {
    parse(&fs::read_to_string(format!("/proc/{process}/maps")).ok()?)
}

fn parse(maps: &str) -> Option<Range<u64>> {
    let line = maps.lines().find(|line| line.ends_with(" [uprobes]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_mapping_is_found_among_others() {
        let maps = "\
55d0a0000000-55d0a0001000 r-xp 00001000 fe:00 12 /tmp/[uprobes] (deleted)
7ffff7f00000-7ffff7f01000 r-xp 00000000 00:00 0  [uprobes-trampoline]
7fffffffe000-7ffffffff000 --xp 00000000 00:00 0                          [uprobes]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";
        assert_eq!(parse(maps), Some(0x7fff_ffff_e000..0x7fff_ffff_f000));
        assert_eq!(
            parse("00400000-00401000 r-xp 00000000 00:00 0 /bin/cat\n"),
            None
        );
    }
}
