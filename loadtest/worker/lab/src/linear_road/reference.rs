// SPDX-License-Identifier: Apache-2.0
//! What the workflow has to find, computed from all reports at once: no actors, no state that is carried along, every
//! window taken anew.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::actor::{Balance, Toll};
use super::rules::{Place, Segment};
use super::traffic::{EXIT_LANE, Report};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// In the order of their reports.
    pub(super) tolls: Vec<Toll>,
    pub(super) balances: Vec<Balance>,
}

pub(super) fn of(reports: &[Report]) -> Found {
    let minutes = reports.last().map_or(0, |last| last.minute + 1);
    let accidents: Vec<_> = (0..minutes).map(|m| accidents_after(reports, m)).collect();
    let statistics: Vec<_> = (0..minutes).map(|m| statistics_after(reports, m)).collect();
    let mut found = Found::default();
    let mut told: HashMap<u32, Vec<Toll>> = HashMap::new();
    let mut segment_of: HashMap<u32, usize> = HashMap::new();
    for report in reports {
        let before = report.minute.checked_sub(1);
        let segment = report.segment();
        if segment_of.insert(report.car, segment) != Some(segment) && report.lane != EXIT_LANE {
            let now = before.and_then(|minute| statistics[minute].get(&segment));
            let accident = before.is_some_and(|minute| {
                let ahead = accidents[minute].iter().filter(|at| **at >= segment);
                ahead.into_iter().any(|at| at - segment <= 4)
            });
            let toll = match now {
                Some(now) if !accident && now.speed < 40_000 && now.cars > 50 => {
                    2 * (now.cars - 50) * (now.cars - 50)
                }
                _ => 0,
            };
            let toll = Toll {
                report: report.number,
                car: report.car,
                segment,
                speed: now.map_or(0, |now| now.speed),
                toll,
                accident,
            };
            told.entry(report.car).or_default().push(toll);
            found.tolls.push(toll);
        }
        if report.asks_balance {
            let tolls = told.get(&report.car).map_or(&[][..], Vec::as_slice);
            // The last segment has not been left yet.
            let left = tolls.split_last().map_or(&[][..], |(_, left)| left);
            found.balances.push(Balance {
                report: report.number,
                car: report.car,
                balance: left.iter().map(|toll| toll.toll).sum(),
            });
        }
    }
    found
}

fn accidents_after(reports: &[Report], minute: usize) -> BTreeSet<usize> {
    let mut places: HashMap<u32, Vec<Place>> = HashMap::new();
    for report in reports.iter().take_while(|report| report.minute <= minute) {
        places
            .entry(report.car)
            .or_default()
            .push(Place::of(report));
    }
    let mut stopped: BTreeMap<Place, u32> = BTreeMap::new();
    for places in places.values() {
        let last = places.iter().rev().take(4).collect::<Vec<_>>();
        if last.len() == 4 && last.iter().all(|place| *place == last[0]) {
            *stopped.entry(*last[0]).or_default() += 1;
        }
    }
    let accidents = stopped.into_iter().filter(|(_, cars)| *cars >= 2);
    accidents.map(|(place, _)| place.segment).collect()
}

fn statistics_after(reports: &[Report], minute: usize) -> BTreeMap<usize, Segment> {
    let window: Vec<_> = (minute.saturating_sub(4)..=minute)
        .map(|minute| speeds_in(reports, minute))
        .collect();
    let last = &window[window.len() - 1];
    let mean = |(segment, now): (&usize, &Segment)| {
        let speeds: Vec<u64> = window
            .iter()
            .filter_map(|minute| minute.get(segment))
            .map(|segment| segment.speed)
            .collect();
        let speed = speeds.iter().sum::<u64>() / speeds.len() as u64;
        (
            *segment,
            Segment {
                speed,
                cars: now.cars,
            },
        )
    };
    last.iter().map(mean).collect()
}

fn speeds_in(reports: &[Report], minute: usize) -> BTreeMap<usize, Segment> {
    let mut cars: BTreeMap<usize, BTreeMap<u32, Vec<u64>>> = BTreeMap::new();
    for report in reports.iter().filter(|report| report.minute == minute) {
        let of_segment = cars.entry(report.segment()).or_default();
        let of_car = of_segment.entry(report.car).or_default();
        of_car.push(1_000 * u64::from(report.speed));
    }
    let mean = |speeds: &[u64]| speeds.iter().sum::<u64>() / speeds.len() as u64;
    let segment = |cars: &BTreeMap<u32, Vec<u64>>| {
        let means: Vec<u64> = cars.values().map(|speeds| mean(speeds)).collect();
        Segment {
            speed: mean(&means),
            cars: means.len() as u64,
        }
    };
    cars.iter().map(|(at, cars)| (*at, segment(cars))).collect()
}
