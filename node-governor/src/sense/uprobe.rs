// SPDX-License-Identifier: Apache-2.0
//! Hot functions that the kernel watches: lanes that eBPF programs write, read by the code that reads the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracing::{info, warn};
use weir_events::Geometry;
use weir_uprobe::{Change, Error, Memory, Probe, Uprobes};

/// The thread has ended by then, or is held up.
const LONGEST_END: Duration = Duration::from_secs(1);

/// Functions that are watched, until dropped. Files that are replaced are read in a thread of its own: a large one
/// takes longer than a tick.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

/// What the kernel side counted.
#[derive(Debug, Default)]
struct Counts {
    no_lane: AtomicU64,
}

impl Watch {
    /// Watches all of them, or none.
    pub fn start(probes: &[Probe], geometry: Geometry) -> Result<(Watch, Memory), Error> {
        let (uprobes, memory) = Uprobes::attach(probes, geometry)?;
        for (probe, site) in uprobes.sites() {
            info!(binary = ?probe.binary, symbol = site.name, pace = ?site.pace, ends = ?site.ends, "watched");
        }
        let stop = Arc::new(AtomicBool::new(false));
        let counts = Arc::new(Counts::default());
        let thread = std::thread::Builder::new().name("uprobes".into());
        let thread = thread.spawn({
            let (stop, counts) = (Arc::clone(&stop), Arc::clone(&counts));
            move || refresh(uprobes, &stop, &counts)
        });
        let watch = Watch {
            stop,
            counts,
            thread: Some(thread.map_err(Error::Map)?),
        };
        Ok((watch, memory))
    }

    /// Events of threads that found no free lane.
    pub fn no_lane(&self) -> u64 {
        self.counts.no_lane.load(Ordering::Relaxed)
    }
}

fn refresh(mut uprobes: Uprobes, stop: &AtomicBool, counts: &Counts) {
    while !stop.load(Ordering::Acquire) {
        std::thread::park_timeout(Duration::from_secs(1));
        for change in uprobes.refresh() {
            match change {
                Change::Replaced(site) => info!(symbol = site.name, "replaced, and watched anew"),
                Change::Lost(error) => warn!(%error, "replaced, and no longer watched"),
            }
        }
        let counted = uprobes.counts();
        counts.no_lane.store(counted.no_lane, Ordering::Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has nothing to say any more. A program that is probed can hold it up for as long as it likes (memory of a
            // file system of its own, say), and nobody waits for that: the kernel ends what is left with this process.
            let begun = Instant::now();
            while !thread.is_finished() && begun.elapsed() < LONGEST_END {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_thread_that_a_probed_program_holds_up() {
        let stop = Arc::new(AtomicBool::new(false));
        let held = Arc::new(AtomicBool::new(true));
        let thread = std::thread::spawn({
            let held = Arc::clone(&held);
            move || {
                while held.load(Ordering::Acquire) {
                    std::thread::park();
                }
            }
        });
        let watched = thread.thread().clone();
        drop(Watch {
            stop: Arc::clone(&stop),
            counts: Arc::default(),
            thread: Some(thread),
        });
        assert!(stop.load(Ordering::Acquire), "it was told");
        held.store(false, Ordering::Release);
        watched.unpark();
    }
}
