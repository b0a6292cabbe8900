// SPDX-License-Identifier: Apache-2.0
//! The ring that an engine's agent writes, seen from beside: what was written, and whether anybody is left inside.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use nix::time::{ClockId, clock_gettime};
use weir_events::{Geometry, Reader};

/// As many as the governor's defaults.
const LANES: u32 = 256;
const EVENTS_PER_LANE: u32 = 256;

/// A look at a ring that takes nothing from whoever else reads it.
pub struct Watch(Reader<File>);

/// Makes a live ring that nobody reads.
///
/// # Errors
/// The folder is not one where only this user may put files.
pub fn create(path: &Path) -> Result<()> {
    let geometry = Geometry::new(LANES, EVENTS_PER_LANE)?;
    Reader::create_or_adopt(path, geometry, None)?;
    Ok(())
}

impl Watch {
    /// From now on.
    ///
    /// # Errors
    /// It is not there, or is no ring.
    pub fn over(path: &Path) -> Result<Self> {
        let context = || format!("opening {}", path.display());
        let file = File::open(path).with_context(context)?;
        let bytes = file.metadata().with_context(context)?.len();
        Ok(Self(Reader::over(file, path, bytes)?))
    }

    /// How many events were written meanwhile.
    ///
    /// # Errors
    /// A thread is within a hot function, a time lies ahead, or events were not counted one by one.
    pub fn written_and_at_rest(&mut self) -> Result<u64> {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
        let now_ns = now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64;
        let mut inside = None;
        let tick = self.0.read(now_ns, |lane| {
            inside = inside.or(lane.running().next().map(|_| lane.number));
        })?;
        if let Some(lane) = inside {
            anyhow::bail!("lane {lane} is left within a hot function");
        }
        ensure!(
            tick.future == 0 && tick.jumped == 0,
            "the ring is not to be believed: {tick:?}"
        );
        Ok(tick.events + tick.lost)
    }
}
