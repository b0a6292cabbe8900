// SPDX-License-Identifier: Apache-2.0
//! A program of machine code: its stacks by the kernel's clock on every core (`man 2 perf_event_open`), its calls by
//! uprobes.
//!
//! Stacks are followed by frame pointers, as the kernel does: of a program without (`-fomit-frame-pointer`, a
//! release build of Rust without `force-frame-pointers`) only the innermost function is known.

mod maps;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};
use weir_events::{FunctionId, Reader};
use weir_uprobe::{Probe, Uprobes};

use crate::Error;
use crate::calls::{self, Counter, LOOK};
use crate::choice::Candidate;
use crate::stacks::Stacks;
use maps::Maps;

/// Samples a second and core: not 100, which would beat with whatever a program does a hundred times a second.
const RATE: u64 = 99;
/// Of a core's samples between two looks: 64 frames of 8 bytes for each, and ten times as many as come.
const BUFFER: usize = 1 << 19;
/// Addresses from here on say what kind of frames come next (`PERF_CONTEXT_MAX`).
const CONTEXT: u64 = -4095_i64 as u64;
/// An event of a uprobe may take 21 us (weir-uprobe's README, "Cost"): so many a second take a tenth of a core.
const TOO_OFTEN: u64 = 5_000;
/// How long all candidates are observed to see which are called too often.
const TRIAL: Duration = Duration::from_millis(100);

/// Every thread of the process, for so long.
pub(crate) fn sample(process: NonZeroU32, time: Duration) -> Result<Stacks, Error> {
    let mut samplers = samplers()?;
    for sampler in &mut samplers {
        sampler.enable().map_err(Error::Perf)?;
    }
    let mut maps = Maps::of(process)?;
    let mut stacks = Stacks::default();
    let end = Instant::now() + time;
    loop {
        let is_over = Instant::now() >= end;
        for sampler in &mut samplers {
            while let Some(record) = sampler.next_record() {
                let Ok(Record::Sample(sample)) = record.parse_record() else {
                    continue;
                };
                if sample.pid() != Some(process.get()) {
                    continue;
                }
                let frames = sample.callchain().unwrap_or_default();
                let frames = frames.iter().copied().filter(|address| *address < CONTEXT);
                // The innermost is where the thread was, each other where it goes on after a call.
                let addresses = frames.enumerate().map(|(place, address)| match place {
                    0 => address,
                    _ => address.saturating_sub(1),
                });
                let mut stack: Vec<_> = addresses
                    .filter_map(|address| maps.function(address))
                    .collect();
                stack.reverse();
                stacks.add(stack);
            }
        }
        if is_over {
            return Ok(stacks);
        }
        std::thread::sleep(LOOK);
    }
}

fn samplers() -> Result<Vec<Sampler>, Error> {
    let path = PathBuf::from("/sys/devices/system/cpu/online");
    let online = std::fs::read_to_string(&path).map_err(Error::of(&path))?;
    let open = |core: usize| {
        let counter = Builder::new(Software::CPU_CLOCK)
            .any_pid()
            .one_cpu(core)
            .exclude_kernel(true)
            .exclude_callchain_kernel(true)
            .sample_frequency(RATE)
            .sample(SampleFlag::TID | SampleFlag::CALLCHAIN)
            .build()?;
        counter.sampled(BUFFER)
    };
    cores(&online)
        .map(|core| open(core).map_err(Error::Perf))
        .collect()
}

/// Of a list as in `0-3,8`.
fn cores(list: &str) -> impl Iterator<Item = usize> + '_ {
    list.trim().split(',').flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok(), last.parse::<usize>().ok());
        first
            .zip(last)
            .into_iter()
            .flat_map(|(first, last)| first..=last)
    })
}

/// Observes each candidate's calls for so long, and returns how many events were lost. Those that cannot be
/// observed, or are called too often to be, are told so.
pub(crate) fn observe(
    process: NonZeroU32,
    candidates: &mut [Candidate],
    time: Duration,
) -> Result<u64, Error> {
    for candidate in &mut *candidates {
        let function = candidate.function();
        let binary = function.binary.clone().unwrap_or_default();
        let site = weir_uprobe::find(&binary, &function.name, false);
        candidate.refused = site.err().map(|error| error.to_string());
    }
    let mut counter = Counter::new();
    observed(process, candidates, TRIAL, &mut counter)?;
    let trial = counter.calls();
    for (candidate, calls) in candidates.iter_mut().zip(trial) {
        let a_second = calls.count() * 1000 / TRIAL.as_millis() as u64;
        if a_second > TOO_OFTEN {
            let reason =
                format!("called {a_second} times a second: an event of each would slow it down");
            candidate.refused = Some(reason);
        }
    }
    let mut counter = Counter::new();
    observed(process, candidates, time, &mut counter)?;
    let lost = counter.lost;
    for (candidate, calls) in candidates.iter_mut().zip(counter.calls()) {
        candidate.calls = candidate.refused.is_none().then_some(calls);
    }
    Ok(lost)
}

fn observed(
    process: NonZeroU32,
    candidates: &[Candidate],
    time: Duration,
    counter: &mut Counter,
) -> Result<(), Error> {
    let numbered = candidates.iter().enumerate();
    let probes: Vec<Probe> = numbered
        .filter(|(_, one)| one.refused.is_none())
        .filter_map(|(id, one)| {
            Some(Probe {
                function: FunctionId::new(u8::try_from(id).ok()?)?,
                binary: one.function().binary.clone()?,
                symbol: one.function().name.clone(),
                process: Some(process),
                no_unwinding: false,
            })
        })
        .collect();
    if probes.is_empty() {
        return Ok(());
    }
    let (mut uprobes, memory) = Uprobes::attach(&probes, calls::geometry())?;
    let bytes = memory.bytes();
    let mut reader = Reader::over(memory, "uprobes", bytes)?;
    counter.watch(&mut reader, time, || {
        uprobes.refresh();
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_listed_as_the_kernel_does() {
        let listed = |list| cores(list).collect::<Vec<_>>();
        assert_eq!(listed("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(listed("0\n"), [0]);
        assert_eq!(listed("\n"), Vec::<usize>::new());
    }
}
