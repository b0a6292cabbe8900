// SPDX-License-Identifier: Apache-2.0
//! Position reports of cars on one direction of one expressway: half a highway, as in document 003's table 2.
//!
//! After Arasu et al., "Linear Road: A Stream Data Management Benchmark" (VLDB 2004), from memory: 100 segments of a
//! mile, a report of each car every 30 s, at times two cars that stop at one place. The traffic itself is ours: cars
//! enter mostly in the first segments and are slow where there are many, so that there is something to charge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub(super) const SEGMENTS: usize = 100;
/// Feet in a segment.
const MILE: f64 = 5280.0;
/// Seconds of traffic, whatever the length of the run.
const TRAFFIC_SECONDS: f64 = 600.0;
/// Seconds between two reports of a car.
const PERIOD: f64 = 30.0;
const ENTRY_LANE: u8 = 0;
pub(super) const EXIT_LANE: u8 = 4;
/// Share of reports with which a car breaks down, and of those that ask for a balance.
const BREAKDOWN: f64 = 0.000_5;
const ASKS_BALANCE: f64 = 0.01;
/// Reports of a car that stands.
const STANDS_FOR: u32 = 8;
const FREE_SPEED: f64 = 60.0;
const LEAST_SPEED: f64 = 15.0;
/// Miles an hour that each car in the segment takes off the speed.
const SLOWED_BY: f64 = 0.6;

/// What a car tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Report {
    /// Its place among all reports.
    pub(super) number: usize,
    /// When it comes, from the beginning of the run.
    pub(super) at: Duration,
    /// Of the traffic, from 0.
    pub(super) minute: usize,
    pub(super) car: u32,
    /// Miles an hour.
    pub(super) speed: u32,
    pub(super) lane: u8,
    /// Feet from the beginning of the expressway.
    pub(super) position: u32,
    /// The driver wants to know the account's balance.
    pub(super) asks_balance: bool,
}

impl Report {
    pub(super) fn segment(&self) -> usize {
        (self.position as usize / MILE as usize).min(SEGMENTS - 1)
    }
}

#[derive(Debug)]
struct Car {
    position: f64,
    lane: u8,
    /// Reports for which it still stands.
    stands: u32,
    reports: u32,
    /// The segment in which it is counted.
    counted: Option<usize>,
}

/// The traffic as it comes about.
struct Expressway {
    draw: StdRng,
    cars: Vec<Car>,
    /// The next report of each car, in microseconds.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// Cars in each segment.
    count: [u32; SEGMENTS],
    /// A place at which a car has just broken down; the next one in its segment runs into it.
    broken_down: Option<(f64, u8)>,
}

/// Reports at a rate that rises evenly from 0 to `top_rate` a second. A run that is shorter than 600 s has the traffic of
/// 600 s with fewer cars, faster.
pub(super) fn reports(seed: u64, top_rate: f64, lasts: Duration) -> Vec<Report> {
    let faster = TRAFFIC_SECONDS / lasts.as_secs_f64();
    let most_cars = (top_rate / faster * PERIOD) as usize;
    let mut road = Expressway {
        draw: StdRng::seed_from_u64(seed),
        cars: Vec::new(),
        due: BinaryHeap::new(),
        count: [0; SEGMENTS],
        broken_down: None,
    };
    for car in 0..most_cars {
        let enters = (car as f64 + road.draw.random::<f64>()) / most_cars as f64 * TRAFFIC_SECONDS;
        let reports = enters + PERIOD * road.draw.random::<f64>();
        road.enter(reports);
    }
    let mut reports = Vec::new();
    while let Some(Reverse((micros, car))) = road.due.pop() {
        let second = micros as f64 / 1e6;
        if second >= TRAFFIC_SECONDS {
            break;
        }
        let number = reports.len();
        let at = Duration::from_secs_f64(second / faster);
        reports.push(road.report(number, at, second, car));
    }
    reports
}

impl Expressway {
    /// A car that reports for the first time then.
    fn enter(&mut self, second: f64) {
        let place: f64 = self.draw.random();
        self.cars.push(Car {
            position: (place * place * SEGMENTS as f64).floor() * MILE,
            lane: ENTRY_LANE,
            stands: 0,
            reports: 0,
            counted: None,
        });
        self.next_report(second, self.cars.len() - 1);
    }

    fn next_report(&mut self, second: f64, car: usize) {
        self.due.push(Reverse(((second * 1e6) as u64, car)));
    }

    fn report(&mut self, number: usize, at: Duration, second: f64, car: usize) -> Report {
        let speed = self.drive(car);
        let breaks_down = self.draw.random_bool(BREAKDOWN);
        self.stop(car, breaks_down);
        let (ends, now) = (SEGMENTS as f64 * MILE, &mut self.cars[car]);
        now.position = now.position.min(ends - 1.0);
        let leaves = now.position >= ends - MILE / 2.0;
        let lane = match () {
            () if leaves => EXIT_LANE,
            () => now.lane,
        };
        let report = Report {
            number,
            at,
            minute: (second / 60.0) as usize,
            car: car as u32,
            speed: if now.stands > 0 { 0 } else { speed as u32 },
            lane,
            position: now.position as u32,
            asks_balance: self.draw.random_bool(ASKS_BALANCE),
        };
        match leaves {
            // Another car takes its place, so that the rate is kept.
            true => {
                self.leave(car);
                self.enter(second + PERIOD);
            }
            false => self.next_report(second + PERIOD, car),
        }
        report
    }

    /// Moves a car to where it is at its next report; returns its speed.
    fn drive(&mut self, car: usize) -> f64 {
        let noise = 10.0 * (self.draw.random::<f64>() - 0.5);
        let segment = |car: &Car| ((car.position / MILE) as usize).min(SEGMENTS - 1);
        let now = &mut self.cars[car];
        let slowed = SLOWED_BY * f64::from(self.count[segment(now)]);
        let speed = (FREE_SPEED - slowed + noise).max(LEAST_SPEED);
        if now.reports > 0 && now.stands == 0 {
            now.position += speed * MILE / 3600.0 * PERIOD;
            now.lane = 1 + (self.draw.random_range(0..3) as u8);
        }
        now.stands = now.stands.saturating_sub(1);
        now.reports += 1;
        if let Some(before) = now.counted.replace(segment(now)) {
            self.count[before] -= 1;
        }
        self.count[segment(now)] += 1;
        speed
    }

    /// Stops a car that breaks down, or that runs into one that has.
    fn stop(&mut self, car: usize, breaks_down: bool) {
        let now = &mut self.cars[car];
        if now.stands > 0 || now.lane == ENTRY_LANE {
            return;
        }
        match self.broken_down {
            Some((position, lane)) if (now.position / MILE) as u32 == (position / MILE) as u32 => {
                (now.position, now.lane, now.stands) = (position, lane, STANDS_FOR);
                self.broken_down = None;
            }
            None if breaks_down => {
                now.stands = STANDS_FOR;
                self.broken_down = Some((now.position, now.lane));
            }
            _ => {}
        }
    }

    fn leave(&mut self, car: usize) {
        if let Some(segment) = self.cars[car].counted.take() {
            self.count[segment] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_reports_come_in_the_first_half() {
        let lasts = Duration::from_secs(600);
        let reports = reports(1, 200.0, lasts);
        let early = reports.iter().filter(|r| r.at.as_secs() < 300).count();
        assert!(
            (57_000..61_000).contains(&reports.len()),
            "{}",
            reports.len()
        );
        assert!((13_500..16_000).contains(&early), "{early}");
        assert!(reports.iter().all(|report| report.at < lasts));
        assert!(reports.is_sorted_by_key(|report| report.at));
    }

    #[test]
    fn a_car_reports_every_30_seconds_of_traffic() {
        let reports = reports(3, 200.0, Duration::from_secs(60));
        let of_one = reports.iter().filter(|report| report.car == 0);
        let times: Vec<f64> = of_one.map(|report| report.at.as_secs_f64()).collect();
        assert!(times.len() > 3);
        let apart = times.windows(2).map(|pair| pair[1] - pair[0]);
        // Ten times faster than the traffic.
        assert!(apart.into_iter().all(|apart| (apart - 3.0).abs() < 1e-3));
    }
}
