// SPDX-License-Identifier: Apache-2.0
//! Requests by stretches of the workload.

use crate::replay::Record;
use crate::sampler::over_time::Points;

/// Seconds of a stretch of the workload: at most some fifty, and enough requests in each.
pub(super) fn stretch(seconds: f64, requests: usize) -> f64 {
    let least = (seconds / 50.0).max(60.0 * seconds / requests.max(1) as f64);
    let nice = [0.5, 1.0, 2.0, 5.0, 10.0];
    nice.into_iter().find(|n| *n >= least).unwrap_or(20.0)
}

/// The requests of each stretch, as one value at its middle; `value` is told the seconds of the
/// stretch, of which the last may have fewer. Not a number: nothing to tell.
pub(super) fn by_stretch<'a>(
    records: impl Iterator<Item = &'a Record>,
    seconds: f64,
    stretch: f64,
    value: impl Fn(&[&Record], f64) -> f64,
) -> Points {
    let count = (seconds / stretch).ceil() as usize;
    let mut stretches: Vec<Vec<&Record>> = vec![Vec::new(); count];
    for record in records {
        if let Some(stretch) = stretches.get_mut((record.at / stretch) as usize) {
            stretch.push(record);
        }
    }
    let point = |(n, records): (usize, &Vec<&Record>)| {
        let start = n as f64 * stretch;
        let lasts = stretch.min(seconds - start);
        (start + lasts / 2.0, value(records, lasts))
    };
    stretches.iter().enumerate().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_few_and_hold_enough() {
        assert_eq!(stretch(50.0, 16_000), 1.0);
        assert_eq!(stretch(15.0, 486), 2.0);
        assert_eq!(stretch(15.0, 1), 20.0);
    }

    #[test]
    fn the_last_stretch_may_be_shorter() {
        let points = by_stretch(std::iter::empty(), 5.0, 2.0, |_, lasts| lasts);
        assert_eq!(points, [(1.0, 2.0), (3.0, 2.0), (4.5, 1.0)]);
    }
}
