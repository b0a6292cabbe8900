// SPDX-License-Identifier: Apache-2.0
//! Probes and the files that they are in.

use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_events::{FunctionId, Geometry};

use crate::Error;
use crate::kernel::{Attached, Kernel};
use crate::memory::Memory;
use crate::sweep::Sweep;
use crate::symbol::{self, Site};

/// How often files are looked at.
const PACE: Duration = Duration::from_secs(1);

/// A hot function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its id; several probes may share one.
    pub function: FunctionId,
    /// The program or the library that it is in. For another file system than ours, `/proc/PID/root/...`.
    pub binary: PathBuf,
    /// As the file has it or as its language writes it, or `0x...`: an offset in the file.
    pub symbol: String,
    /// Only this process; otherwise every process that runs the file, also those to come.
    pub process: Option<NonZeroU32>,
    /// A promise that no exception and no panic ever passes through the function: its end is then seen the cheaper
    /// way, see [`Ends`](crate::Ends). Where one does pass, the program ends.
    pub no_unwinding: bool,
}

/// What the kernel side counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events of threads that found no free lane.
    pub no_lane: u64,
    /// Entries that found a call over whose return was not seen.
    pub ended_by_stack: u64,
}

/// Something that happened to a watched file.
#[derive(Debug)]
pub enum Change {
    /// It was replaced: new processes are watched too. The functions of the one before stay watched.
    Replaced(Site),
    /// It was replaced, and what there is now cannot be watched.
    Lost(Error),
}

struct Watched {
    probe: Probe,
    identity: Option<Identity>,
    site: Site,
    now: Option<Attached>,
    /// Of the file before: its processes may still be running.
    before: Option<Attached>,
    /// The new file could not be watched when it was last looked at.
    lost: bool,
}

/// Tells a file from one that replaced it, and from itself written anew.
type Identity = [i64; 5];

/// Functions that are watched, until dropped.
pub struct Uprobes {
    kernel: Kernel,
    watched: Vec<Watched>,
    memory: Memory,
    sweep: Sweep,
    /// As counted at the last look.
    no_lane: u64,
    looked: Instant,
}

impl Uprobes {
    /// Watches each of `probes`, or none.
    pub fn attach(probes: &[Probe], geometry: Geometry) -> Result<(Self, Memory), Error> {
        crate::doctor::ready()?;
        let found = probes
            .iter()
            .map(|probe| Ok((probe.clone(), find(probe)?)))
            .collect::<Result<Vec<_>, Error>>()?;
        let (mut kernel, memory) = Kernel::load(geometry)?;
        let watched = found
            .into_iter()
            .map(|(probe, (identity, site))| {
                let now = Some(watch(&mut kernel, &probe, &site)?);
                Ok(Watched {
                    probe,
                    identity,
                    site,
                    now,
                    before: None,
                    lost: false,
                })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let uprobes = Self {
            kernel,
            watched,
            memory: memory.clone(),
            sweep: Sweep::default(),
            no_lane: 0,
            looked: Instant::now(),
        };
        Ok((uprobes, memory))
    }

    /// Where each probe is.
    pub fn sites(&self) -> impl Iterator<Item = (&Probe, &Site)> {
        self.watched.iter().map(|one| (&one.probe, &one.site))
    }

    /// What the kernel side counted since the start.
    pub fn counts(&self) -> Counts {
        self.kernel.counts()
    }

    /// Looks whether files were replaced and watches the new ones, and whether calls are over that no event ended.
    /// To be called as often as is handy: it looks at most once a second.
    pub fn refresh(&mut self) -> Vec<Change> {
        if self.looked.elapsed() < PACE {
            return Vec::new();
        }
        self.looked = Instant::now();
        self.sweep.look(&self.kernel, &self.memory);
        self.free_dead();
        let Self {
            kernel, watched, ..
        } = self;
        watched
            .iter_mut()
            .filter_map(|one| one.refresh(kernel))
            .collect()
    }
}

impl Uprobes {
    /// The kernel side frees the lane of a thread that ends. Should it have missed an end, that is made good where
    /// lanes are short.
    fn free_dead(&mut self) {
        let no_lane = self.counts().no_lane;
        if no_lane == self.no_lane {
            return;
        }
        self.no_lane = no_lane;
        for (lane, owner) in self.memory.owners() {
            let thread = format!("/proc/{}/task/{}", owner.pid, owner.tid);
            if !Path::new(&thread).exists() && self.kernel.forget(owner.tid) {
                self.memory.free(lane);
                self.kernel.offer(lane);
            }
        }
    }
}

impl Drop for Uprobes {
    /// No call is taken to run on when nothing is watched any more.
    fn drop(&mut self) {
        self.watched.clear();
        for (lane, _) in self.memory.owners() {
            self.memory.free(lane);
        }
    }
}

impl Watched {
    /// A file that is gone may be one that is being replaced: it is waited for.
    fn refresh(&mut self, kernel: &mut Kernel) -> Option<Change> {
        let identity = identity(&self.probe.binary)?;
        if self.identity == Some(identity) {
            return None;
        }
        // The same file, written anew: the kernel would go on to stop programs where the function was.
        if self
            .identity
            .is_some_and(|before| before[..2] == identity[..2])
        {
            self.now = None;
        }
        let attached = find(&self.probe).and_then(|(identity, site)| {
            let attached = watch(kernel, &self.probe, &site)?;
            Ok((identity, attached, site))
        });
        match attached {
            Ok((identity, attached, site)) => {
                self.identity = identity;
                self.lost = false;
                if let Some(before) = self.now.replace(attached) {
                    self.before = Some(before);
                }
                self.site = site.clone();
                Some(Change::Replaced(site))
            }
            // It may be half written, or files may be short: tried again at the next look, and told once.
            Err(error) => {
                let told = std::mem::replace(&mut self.lost, true);
                (!told).then_some(Change::Lost(error))
            }
        }
    }
}

fn find(probe: &Probe) -> Result<(Option<Identity>, Site), Error> {
    // Before it is read: a change while it is read is then seen at the next look.
    let identity = identity(&probe.binary);
    Ok((
        identity,
        symbol::find(&probe.binary, &probe.symbol, probe.no_unwinding)?,
    ))
}

fn watch(kernel: &mut Kernel, probe: &Probe, site: &Site) -> Result<Attached, Error> {
    kernel.attach(&probe.binary, site, probe.function, probe.process)
}

fn identity(file: &Path) -> Option<Identity> {
    let file = std::fs::metadata(file).ok()?;
    Some([
        file.dev() as i64,
        file.ino() as i64,
        file.size() as i64,
        file.mtime(),
        file.mtime_nsec(),
    ])
}

#[cfg(test)]
mod tests {

    use weir_events::Owner;

    use super::*;

    #[test]
    fn the_lane_of_a_thread_whose_end_was_missed_is_offered_again_when_lanes_are_short() {
        let geometry = Geometry::new(2, 16).expect("in range");
        let (mut uprobes, memory) = match Uprobes::attach(&[], geometry) {
            Ok(attached) => attached,
            Err(error) => {
                return weir_needs::skip(weir_needs::Need::Uprobes, error);
            }
        };
        let own = std::process::id();
        let living = Owner { pid: own, tid: own };
        // No thread has so high a number (`PID_MAX_LIMIT` in the kernel's include/linux/threads.h).
        let dead = Owner {
            pid: u32::MAX,
            tid: u32::MAX,
        };
        for (lane, owner) in [(0, living), (1, dead)] {
            assert_eq!(uprobes.kernel.claim_for(owner.tid), Some(lane));
            let bytes = owner.word().to_ne_bytes();
            weir_events::Memory::write_at(&memory, geometry.head(lane), &bytes).expect("within");
        }
        uprobes.free_dead();
        assert_eq!(memory.owners().count(), 2, "lanes are not short");
        uprobes.kernel.count_no_lane();
        uprobes.free_dead();
        assert_eq!(memory.owners().collect::<Vec<_>>(), [(0, living)]);
        assert_eq!(uprobes.kernel.claim_for(7), Some(1));
        assert_eq!(uprobes.kernel.claim_for(8), None);
    }
}
