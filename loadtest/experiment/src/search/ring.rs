// SPDX-License-Identifier: Apache-2.0
//! The ring that an engine's agent writes, seen from beside: what was written, and whether anybody is left inside.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use nix::time::{ClockId, clock_gettime};
use weir_events::{Event, Geometry, Reader};

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
        let (mut inside, mut odd) = (None, None);
        let tick = self.0.read(now_ns, |lane| {
            inside = inside.or(lane.running().next().map(|_| lane.number));
            odd = odd.or((!alternate(lane.events)).then_some(lane.number));
        })?;
        if let Some(lane) = inside {
            bail!("lane {lane} is left within a hot function");
        }
        if let Some(lane) = odd {
            bail!("the calls in lane {lane} do not begin and end by turns");
        }
        ensure!(
            tick.future == 0 && tick.jumped == 0,
            "the ring is not to be believed: {tick:?}"
        );
        Ok(tick.events + tick.lost)
    }
}

/// Whether one function begins and ends by turns, and later ones later.
fn alternate(events: &[Event]) -> bool {
    events.array_windows().all(|[one, next]| {
        one.function == next.function && one.kind != next.kind && one.time_ns <= next.time_ns
    })
}

#[cfg(test)]
mod tests {
    use weir_events::{FunctionId, Kind};

    use super::*;

    #[test]
    fn a_missing_end_another_function_and_an_earlier_time_are_noticed() {
        let event = |kind, function, time_ns| Event {
            time_ns,
            kind,
            function: FunctionId::new(function).unwrap(),
            core: None,
        };
        let enter = event(Kind::Enter, 1, 5);
        assert!(alternate(&[]) && alternate(&[enter]));
        assert!(alternate(&[
            enter,
            event(Kind::Leave, 1, 6),
            event(Kind::Enter, 1, 6)
        ]));
        assert!(!alternate(&[enter, event(Kind::Enter, 1, 6)]));
        assert!(!alternate(&[enter, event(Kind::Leave, 2, 6)]));
        assert!(!alternate(&[enter, event(Kind::Leave, 1, 4)]));
    }
}
