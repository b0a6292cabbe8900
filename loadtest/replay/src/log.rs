// SPDX-License-Identifier: Apache-2.0
//! A recorded log: lines in the order of their times, by a clock that stands still for a while.

use std::io::BufRead;
use std::ops::Range;
use std::time::Duration;

use crate::rng::SplitMix64;
use crate::table::{BadInput, Row, read_csv};

/// A line of a log.
pub(crate) trait Timed: Sized {
    /// Columns of the file; `t_ms` is one of them.
    const COLUMNS: &'static [&'static str];
    fn parse(cells: &Row<'_>) -> Result<Self, BadInput>;

    fn t_ms(&self) -> u64;
}

/// The requests of some minutes. The whole file is checked.
pub(crate) fn read<T: Timed>(trace: impl BufRead, minutes: Range<u64>) -> Result<Vec<T>, BadInput> {
    let mut all = Vec::new();
    let mut last_ms = 0;
    read_csv(trace, T::COLUMNS, |cells| {
        let line = T::parse(cells)?;
        let t_ms = line.t_ms();
        if t_ms < last_ms {
            let reason = format!("{t_ms} is before {last_ms} of the line above");
            return Err(cells.bad("t_ms", reason));
        }
        last_ms = t_ms;
        if minutes.contains(&(t_ms / 60_000)) {
            all.push(line);
        }
        Ok(())
    })?;
    Ok(all)
}

/// When each request came, in microseconds of the source, whose clock stands still for `tick`: those of one tick are spread
/// over it, uniform at random, in the order of the source.
pub(crate) fn moments_us<T: Timed>(all: &[T], tick: Duration, rng: &mut SplitMix64) -> Vec<u64> {
    let mut moments = Vec::with_capacity(all.len());
    for at_once in all.chunk_by(|a, b| a.t_ms() == b.t_ms()) {
        let mut places: Vec<f64> = at_once.iter().map(|_| rng.unit()).collect();
        places.sort_by(f64::total_cmp);
        let within = |place: f64| (place * tick.as_micros() as f64) as u64;
        let spread = at_once.iter().zip(places);
        moments.extend(spread.map(|(line, place)| line.t_ms() * 1000 + within(place)));
    }
    // A tick that is a millisecond short of the next one's distance may reach into that.
    moments.sort_unstable();
    moments
}
