// SPDX-License-Identifier: Apache-2.0
//! The kernel side: loaded once, attached to any number of sites.

use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use aya::maps::{Array, HashMap, Map, Stack};
use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLink, UProbeScope};
use aya::programs::{ProgramError, RawTracePoint, UProbe};
use aya::{Ebpf, EbpfLoader};
use weir_events::layout::{FUNCTIONS, HEAD_BYTES, Header};
use weir_events::{FunctionId, Geometry};

use crate::memory::Memory;
use crate::symbol::{Ends, Site};
use crate::{Counts, Error};

static OBJECT: &[u8] = aya::include_bytes_aligned!("probe.bpf.o");

/// Of the map that holds the lanes: the header, the heads and the events are whole numbers of them.
const PIECE: usize = HEAD_BYTES as usize;

/// How often a program is loaded whose check was interrupted, as libbpf does (`sys_bpf_prog_load`).
const ATTEMPTS: usize = 5;

pub(crate) struct Kernel {
    ebpf: Ebpf,
}

/// Loads, again where that was interrupted.
fn tried<E>(
    mut load: impl FnMut() -> Result<(), E>,
    interrupted: impl Fn(&E) -> bool,
) -> Result<(), E> {
    for _ in 1..ATTEMPTS {
        match load() {
            Err(error) if interrupted(&error) => {}
            ended => return ended,
        }
    }
    load()
}

/// The kernel checks a program only until a signal waits for the thread that loads it: EAGAIN.
fn is_interrupted(error: &ProgramError) -> bool {
    matches!(error, ProgramError::LoadError { io_error, .. } if io_error.kind() == ErrorKind::WouldBlock)
}

/// A function that is watched, until dropped.
pub(crate) struct Attached {
    _links: Vec<UProbeLink>,
}

/// In a cookie: the instructions that leave the function are watched.
const AT_INSTRUCTIONS: u64 = 0x100;

/// What the kernel side knows of a thread: its lane and what it entered; by function, the stack pointer at entry and
/// the return address that was there, or 0.
type Thread = [u64; 1 + 2 * FUNCTIONS];

impl Kernel {
    /// Loads the programs and sees to it that lanes are freed. Nothing is attached to any program yet.
    pub(crate) fn load(geometry: Geometry) -> Result<(Self, Memory), Error> {
        let pid_namespace = crate::doctor::host_namespace()?;
        let mut ebpf = EbpfLoader::new()
            .override_global("lanes", &geometry.lanes(), true)
            .override_global("events_per_lane", &geometry.events_per_lane(), true)
            .override_global("pid_namespace", &pid_namespace, true)
            .override_global(
                "is_aarch64",
                &u32::from(cfg!(target_arch = "aarch64")),
                true,
            )
            .map_max_entries("memory", (geometry.file_bytes() / HEAD_BYTES) as u32)
            .map_max_entries("threads", geometry.lanes())
            .map_max_entries("free_lanes", geometry.lanes())
            .load(OBJECT)
            .map_err(|error| Error::refused("creating maps", &error))?;
        let memory = prepare(&mut ebpf, geometry)?;
        for name in ["thread_exit", "thread_exec"] {
            let program: &mut RawTracePoint = program(&mut ebpf, name);
            tried(|| program.load(), is_interrupted)
                .map_err(|error| Error::refused("loading the program", &error))?;
            program
                .attach(&name.replace("thread", "sched_process"))
                .map_err(|error| Error::refused("attaching to the end of threads", &error))?;
        }
        for name in ["enter", "leave", "leave_at"] {
            let program: &mut UProbe = program(&mut ebpf, name);
            tried(|| program.load(), is_interrupted)
                .map_err(|error| Error::refused("loading the program", &error))?;
        }
        Ok((Self { ebpf }, memory))
    }

    /// Watches the calls that come by a site.
    pub(crate) fn attach(
        &mut self,
        binary: &Path,
        site: &Site,
        function: FunctionId,
        process: Option<NonZeroU32>,
    ) -> Result<Attached, Error> {
        let process = process.map_or(0, |id| u64::from(id.get()) << 32);
        let cookie = process | function.index() as u64;
        let mut attach = |name, offset, cookie| {
            let program: &mut UProbe = program(&mut self.ebpf, name);
            let point = UProbeAttachPoint {
                location: UProbeAttachLocation::AbsoluteOffset(offset),
                cookie: Some(cookie),
            };
            // The kernel's own filter would see the first thread only.
            let id = program.attach(point, binary, UProbeScope::AllProcesses)?;
            program.take_link(id)
        };
        // The ends first: a call whose entry is seen is then one whose end will be.
        let links = match &site.ends {
            Ends::Kernel => vec![
                ("leave", site.offset, cookie),
                ("enter", site.offset, cookie),
            ],
            Ends::Instructions(ends) => {
                let ends = ends.iter().map(|end| ("leave_at", *end, cookie));
                let enter = ("enter", site.offset, cookie | AT_INSTRUCTIONS);
                ends.chain([enter]).collect()
            }
        };
        let links = links
            .into_iter()
            .map(|(name, offset, cookie)| attach(name, offset, cookie));
        let links = links.collect::<Result<_, _>>();
        let links = links.map_err(|error: ProgramError| Error::refused("attaching", &error))?;
        Ok(Attached { _links: links })
    }

    /// Of a thread's last entry into a function: the stack pointer, and the return address where it was left there.
    pub(crate) fn entered(&self, thread: u32, function: usize) -> Option<(u64, Option<u64>)> {
        let map = self.ebpf.map("threads").expect("of the object");
        let threads = HashMap::<_, u32, Thread>::try_from(map).ok()?;
        let thread = threads.get(&thread, 0).ok()?;
        let (stack, back) = thread[1..].split_at(FUNCTIONS);
        Some((
            stack[function],
            Some(back[function]).filter(|back| *back != 0),
        ))
    }

    /// Forgets a thread; false if it is not known.
    pub(crate) fn forget(&mut self, thread: u32) -> bool {
        let map = self.ebpf.map_mut("threads").expect("of the object");
        HashMap::<_, u32, Thread>::try_from(map)
            .is_ok_and(|mut threads| threads.remove(&thread).is_ok())
    }

    /// Offers a free lane to the next thread that needs one.
    pub(crate) fn offer(&mut self, lane: u32) {
        let map = self.ebpf.map_mut("free_lanes").expect("of the object");
        // There is room for every lane.
        let _ = Stack::<_, u32>::try_from(map).and_then(|mut free| free.push(lane, 0));
    }

    pub(crate) fn counts(&self) -> Counts {
        let map = self.ebpf.map("counts").expect("of the object");
        let count = |index: u32| {
            let array = Array::<_, u64>::try_from(map).ok()?;
            array.get(&index, 0).ok()
        };
        Counts {
            no_lane: count(0).unwrap_or_default(),
            ended_by_stack: count(1).unwrap_or_default(),
        }
    }
}

fn program<'a, T>(ebpf: &'a mut Ebpf, name: &str) -> &'a mut T
where
    &'a mut T: TryFrom<&'a mut aya::programs::Program>,
{
    let program = ebpf.program_mut(name).expect("of the object");
    program.try_into().ok().expect("of the object")
}

/// Writes the header, and names every lane as free.
fn prepare(ebpf: &mut Ebpf, geometry: Geometry) -> Result<Memory, Error> {
    let refused = |error| Error::refused("preparing the lanes", &error);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let header = Header {
        geometry,
        retired: false,
        created_unix_ms: now.map_or(0, |since| since.as_millis() as u64),
    };
    let mut first = [0; PIECE];
    for (to, from) in first.iter_mut().zip(header.encode()) {
        *to = from;
    }
    let map = ebpf.map_mut("memory").expect("of the object");
    Array::<_, [u8; PIECE]>::try_from(&mut *map)
        .and_then(|mut array| array.set(0, first, 0))
        .map_err(refused)?;
    let Map::Array(data) = map else {
        unreachable!("of the object");
    };
    let memory = Memory::new(data.fd().as_fd(), geometry)?;
    let free = ebpf.map_mut("free_lanes").expect("of the object");
    let mut free = Stack::<_, u32>::try_from(free).map_err(refused)?;
    // The lowest on top: the reader looks no further than the highest that was ever taken.
    for lane in (0..geometry.lanes()).rev() {
        free.push(lane, 0).map_err(refused)?;
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {

    use super::*;

    /// What the kernel side does for a thread that it sees first.
    impl Kernel {
        pub(crate) fn claim_for(&mut self, thread: u32) -> Option<u32> {
            let map = self.ebpf.map_mut("free_lanes").expect("of the object");
            let lane = Stack::<_, u32>::try_from(map)
                .expect("a stack")
                .pop(0)
                .ok()?;
            let map = self.ebpf.map_mut("threads").expect("of the object");
            let mut threads = HashMap::<_, u32, Thread>::try_from(map).expect("a map");
            let mut entry = [0; 1 + 2 * FUNCTIONS];
            entry[0] = lane.into();
            threads.insert(thread, entry, 0).expect("there is room");
            Some(lane)
        }

        pub(crate) fn count_no_lane(&mut self) {
            let map = self.ebpf.map_mut("counts").expect("of the object");
            let mut counts = Array::<_, u64>::try_from(map).expect("an array");
            counts.set(0, 1, 0).expect("it is there");
        }
    }

    #[test]
    fn the_programs_are_far_below_what_the_kernel_takes_to_check() {
        let loaded = Kernel::load(Geometry::default());
        let (mut kernel, _memory) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                return weir_needs::skip(weir_needs::Need::Uprobes, error);
            }
        };
        for name in ["enter", "leave"] {
            let program: &mut UProbe = program(&mut kernel.ebpf, name);
            let checked = program.info().expect("loaded");
            // The kernel's limit is 1,000,000.
            let checked = checked.verified_instruction_count();
            assert!(
                checked.is_none_or(|checked| checked < 100_000),
                "{name}: {checked:?}"
            );
        }
    }

    /// What comes of loading that is interrupted so often, and how often it was tried.
    fn interrupted(times: usize) -> (Result<(), bool>, usize) {
        let mut tries = 0;
        let load = || {
            tries += 1;
            if tries > times { Ok(()) } else { Err(true) }
        };
        (tried(load, |interrupted| *interrupted), tries)
    }

    #[test]
    fn a_check_that_a_signal_interrupted_is_made_again_and_not_for_ever() {
        assert_eq!(interrupted(0), (Ok(()), 1));
        assert_eq!(interrupted(ATTEMPTS - 1), (Ok(()), ATTEMPTS));
        assert_eq!(interrupted(ATTEMPTS + 1), (Err(true), ATTEMPTS));
    }
}
