// SPDX-License-Identifier: Apache-2.0
//! The rules of Linear Road (Arasu et al., VLDB 2004, from memory), in whole numbers, so that sums do not depend on their
//! order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::actor::Toll;
use super::traffic::{Report, SEGMENTS};

/// Minutes over which the latest average velocity is taken.
pub(super) const WINDOW: usize = 5;
/// Reports from one place after which a car counts as stopped.
const STOPPED_AFTER: u32 = 4;
/// A toll is due below this velocity, in thousandths of a mile an hour, and above so many cars.
const SLOW: u64 = 40_000;
const CROWDED: u64 = 50;
/// Segments from the car's own on in which an accident frees it of the toll.
const AHEAD: usize = 5;

/// Where a car is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) segment: usize,
    pub(super) position: u32,
    pub(super) lane: u8,
}

impl Place {
    pub(super) fn of(report: &Report) -> Self {
        Self {
            segment: report.segment(),
            position: report.position,
            lane: report.lane,
        }
    }
}

/// Of a segment: velocity in thousandths of a mile an hour, and cars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) speed: u64,
    pub(super) cars: u64,
}

/// `2 · (cars − 50)²` where the segment is slow and crowded and no accident is ahead.
pub(super) fn toll(report: &Report, now: Option<Segment>, accidents: &BTreeSet<usize>) -> Toll {
    let segment = report.segment();
    let ahead = segment..(segment + AHEAD).min(SEGMENTS);
    let accident = accidents.range(ahead).next().is_some();
    let due = now.filter(|now| now.speed < SLOW && now.cars > CROWDED && !accident);
    Toll {
        report: report.number,
        car: report.car,
        segment,
        speed: now.map_or(0, |now| now.speed),
        toll: due.map_or(0, |now| 2 * (now.cars - CROWDED).pow(2)),
        accident,
    }
}

/// Of each segment the mean velocity of the last minutes and the cars of the last.
pub(super) fn latest<'a>(
    window: impl DoubleEndedIterator<Item = &'a BTreeMap<usize, Segment>> + Clone,
) -> BTreeMap<usize, Segment> {
    let Some(last) = window.clone().next_back() else {
        return BTreeMap::new();
    };
    let mean = |(segment, now): (&usize, &Segment)| {
        let speeds = window.clone().filter_map(|minute| minute.get(segment));
        let (sum, n) = speeds.fold((0, 0), |(sum, n), s| (sum + s.speed, n + 1));
        let (speed, cars) = (sum / n, now.cars);
        (*segment, Segment { speed, cars })
    };
    last.iter().map(mean).collect()
}

/// Speeds of cars in a minute.
#[derive(Debug, Default)]
pub(super) struct Speeds(BTreeMap<(usize, u32), (u64, u64)>);

impl Speeds {
    pub(super) fn report(&mut self, report: &Report) {
        let (sum, n) = self.0.entry((report.segment(), report.car)).or_default();
        *sum += 1_000 * u64::from(report.speed);
        *n += 1;
    }

    /// The mean of the cars' means.
    pub(super) fn segments(self) -> BTreeMap<usize, Segment> {
        let mut segments = BTreeMap::new();
        for ((segment, _), (sum, n)) in self.0 {
            let all = Segment { speed: 0, cars: 0 };
            let all = segments.entry(segment).or_insert(all);
            all.speed += sum / n;
            all.cars += 1;
        }
        let mean = |all: Segment| all.speed / all.cars;
        let mean = |(segment, all)| {
            (
                segment,
                Segment {
                    speed: mean(all),
                    ..all
                },
            )
        };
        segments.into_iter().map(mean).collect()
    }
}

/// Cars that have reported from the same place again and again.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    last: HashMap<u32, (Place, u32)>,
    at: BTreeMap<Place, BTreeSet<u32>>,
}

impl Stopped {
    pub(super) fn report(&mut self, car: u32, place: Place) {
        let (last, times) = self.last.entry(car).or_insert((place, 0));
        if *last != place {
            if let Some(cars) = self.at.get_mut(last) {
                cars.remove(&car);
            }
            (*last, *times) = (place, 0);
        }
        *times += 1;
        if *times >= STOPPED_AFTER {
            self.at.entry(place).or_default().insert(car);
        }
    }

    /// Segments in which two cars or more have stopped at one place.
    pub(super) fn accidents(&self) -> BTreeSet<usize> {
        let accidents = self.at.iter().filter(|(_, cars)| cars.len() >= 2);
        accidents.map(|(place, _)| place.segment).collect()
    }
}
