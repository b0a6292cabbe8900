// SPDX-License-Identifier: Apache-2.0
//! A recorded log: lines in the order of their times, by a clock that stands still for a while.

use std::io::BufRead;
use std::ops::Range;

use crate::rng::SplitMix64;
use crate::table::{BadInput, Row, read_csv};

/// A line of a log.
pub(crate) trait Timed: Sized {
    /// Columns of the file; `t_ms` is one of them.
    const COLUMNS: &'static [&'static str];
    /// The source's clock stands still for so long.
    const CLOCK_MS: u64;

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

/// When each request came, in microseconds of the source: those of one tick of its clock are spread over it, uniform
/// at random, in the order of the source.
pub(crate) fn moments_us<T: Timed>(all: &[T], rng: &mut SplitMix64) -> Vec<u64> {
    let mut moments = Vec::with_capacity(all.len());
    for tick in all.chunk_by(|a, b| a.t_ms() == b.t_ms()) {
        let mut places: Vec<f64> = tick.iter().map(|_| rng.unit()).collect();
        places.sort_by(f64::total_cmp);
        let within = |place: f64| (place * (T::CLOCK_MS * 1000) as f64) as u64;
        let spread = tick.iter().zip(places);
        moments.extend(spread.map(|(line, place)| line.t_ms() * 1000 + within(place)));
    }
    // A tick that is a millisecond short of the next one's distance may reach into that.
    moments.sort_unstable();
    moments
}
