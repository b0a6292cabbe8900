// SPDX-License-Identifier: Apache-2.0
//! An admission level that does not flip-flop: it follows how long what is queued will wait.
//!
//! ```text
//!  wait ──> within the band, and not about to leave it? hold
//!           above: admit so much less that the wait falls back slowly ──┐
//!           below: admit so much more that it rises slowly            ──┴─> share ──> level among the ranks
//! ```
//! DAGOR (Zhou et al., SoCC 2018, section 4.2) lowers by a fixed share in each window of overload and raises
//! by another in each other one, so around its one threshold it always moves; document 001 (section 10.5.2)
//! saw servers switch between all and nothing. Three things differ here, the ranks are the same:
//! - *a dead band*: between `low` and `high` nothing moves;
//! - *steps as large as the need*: the wait of a queue rises by `admitted / done - 1` seconds a second
//!   (Little's law), so that the measured slope says by which factor too much is admitted. One step corrects
//!   it, bounded by `most`;
//! - *no step on what is not known yet*: after a step down the next figures are only looked at, because they
//!   were partly made before it.
//!
//! Evidence of overload is a wait. Refused connections only hasten a correction ([`Window::refused`]), and after
//! two idle windows in a row everything is admitted.

use std::time::Duration;

use super::MovingLevel;
use super::evidence::EARLY_SIGN;
use crate::{Level, Rank};

/// How the level moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The wait that corrections head for.
    pub target: Duration,
    /// Less wait than this raises the level.
    pub low: Duration,
    /// More wait than this lowers the level.
    pub high: Duration,
    /// A slope counts at once if the wait is beyond the target and leads out of the band within this time.
    pub ahead: Duration,
    /// Time in which a correction brings the wait back to the target. Long, or corrections overshoot.
    pub settle: Duration,
    /// Most of what is admitted that one step sheds; a step adds at most as much as there is.
    pub most: f64,
    /// By what the steps up grow while the wait stays below `low`.
    pub haste: f64,
    /// Time in which the weight of past requests halves.
    pub half_life: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            target: Duration::from_secs(2),
            low: Duration::from_millis(500),
            high: Duration::from_secs(6),
            ahead: Duration::from_secs(3),
            settle: Duration::from_secs(120),
            // Three times what can be done is brought back by one step.
            most: 0.7,
            haste: 2.0,
            // As DAGOR's here.
            half_life: Duration::from_secs(10),
        }
    }
}

impl Params {
    /// The default band in proportion to another target.
    pub fn aiming_at(target: Duration) -> Self {
        let default = Self::default();
        let factor = target.as_secs_f64() / default.target.as_secs_f64();
        Self {
            target,
            low: default.low.mul_f64(factor),
            high: default.high.mul_f64(factor),
            ..default
        }
    }
}

/// Of two levels the one nearer to what is wanted. Where callers try again and again a single rank is some
/// per cent of what can be done, and always one too far would never be in balance.
const NEAREST: f64 = 0.5;
/// Standard deviations that a slope must differ by from chance, if jobs came and went one by one.
const BEYOND_CHANCE: f64 = 5.0;
/// The first step up of a calm spell.
const PROBE: f64 = 0.05;
/// Figures further apart say little of the present.
const LONGEST_S: f64 = 120.0;
/// Most of what is admitted that refused connections shed in one window.
const REFUSAL: f64 = 0.1;

/// Demand and load since the last step.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// How long it was.
    pub length: Duration,
    /// Requests by rank that wanted in, whether or not they got in. Fractions are fine.
    pub demand: Vec<(Rank, f64)>,
    /// Jobs that were done: of few jobs a slope is mostly chance.
    pub done: f64,
    /// How long what is queued now will wait; none where nothing was measured.
    pub wait: Option<Duration>,
    /// Nothing waits, and cores are free.
    pub idle: bool,
    /// Share of the requests that were sent whose connection was not taken: an early sign of overload (document
    /// 001, section 12.2) where it is more than closed connections and single resets take every day and what is
    /// queued agrees, or nothing is answered and nothing measured.
    pub refused: f64,
}

impl Window {
    /// The share of refused connections, where it counts.
    fn early_sign(&self, low: Duration) -> Option<f64> {
        let agrees = match self.wait {
            Some(wait) => wait >= low,
            None => self.done <= 0.0,
        };
        (self.refused > EARLY_SIGN && agrees).then_some(self.refused)
    }
}

/// The level of a host or of a cluster. By default everything is admitted.
#[derive(Clone, Debug, Default)]
pub struct Controller {
    moving: MovingLevel,
    /// Seconds since the beginning.
    now: f64,
    last: Option<Reading>,
    /// The first figures that owe nothing to the level before.
    since: Option<Reading>,
    /// The level went down at the last step.
    fresh: bool,
    /// Steps up in a row.
    calm: i32,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    at: f64,
    wait: f64,
}

impl Reading {
    /// Seconds of wait that a second has added up to `now`.
    fn slope_to(self, now: Self) -> Option<f64> {
        let passed = now.at - self.at;
        // A queue shrinks by what is done at most, so anything steeper is an error of measurement.
        (passed > 0.0).then(|| ((now.wait - self.wait) / passed).max(-0.9))
    }
}

impl Controller {
    /// See [`MovingLevel::starting_at`].
    pub fn starting_at(level: Level) -> Self {
        Self {
            moving: MovingLevel::starting_at(level),
            ..Self::default()
        }
    }

    /// The present level.
    pub fn level(&self) -> Level {
        self.moving.get()
    }

    /// Takes in one window and returns the level for the next.
    ///
    /// One step sheds at most `most` of the admitted weight and the rank that crosses that share, adds at
    /// most as much as is admitted and the rank that crosses it, and moves at least one rank for which there
    /// is demand. A window without a measurement changes nothing, unless it has an early sign. The second idle
    /// window in a row admits everything.
    pub fn step(&mut self, params: &Params, window: &Window) -> Level {
        self.now += window.length.as_secs_f64();
        self.moving
            .remember(&window.demand, window.length, params.half_life);
        let reading = window.wait.map(|wait| Reading {
            at: self.now,
            wait: wait.as_secs_f64(),
        });
        let idle = self.moving.idleness.opens(window.idle);
        let measured = reading.map(|reading| self.factor(params, reading, window));
        let sign = window.early_sign(params.low);
        // Requests that were taken are served, so no more is shed than the share that was not.
        let signalled = sign.map(|share| 1.0 - share.min(REFUSAL).min(params.most));
        let factor = match (measured, signalled) {
            (None, None) => return self.level(),
            (Some(measured), None) => measured,
            (measured, Some(signalled)) => {
                self.calm = 0;
                measured.unwrap_or(1.0).min(signalled)
            }
        };
        let before = self.level();
        match factor {
            _ if idle => self.moving.open(),
            ..1.0 => self.moving.lower(1.0 - factor, NEAREST),
            1.0 => {}
            _ => self.moving.raise(factor - 1.0, NEAREST),
        }
        let level = self.level();
        self.fresh = level < before;
        let old = |since: Reading| self.now - since.at > LONGEST_S;
        if level != before || self.since.is_none_or(old) {
            self.since = reading.filter(|_| !self.fresh);
        }
        self.last = reading.or(self.last);
        level
    }

    /// By what the admitted weight is to be multiplied.
    fn factor(&mut self, params: &Params, now: Reading, window: &Window) -> f64 {
        let least = 1.0 - params.most;
        if std::mem::take(&mut self.fresh) {
            return 1.0;
        }
        let steep = self.last.and_then(|last| last.slope_to(now));
        let chance = BEYOND_CHANCE / window.done.max(1.0).sqrt();
        let steep = steep.filter(|slope| slope.abs() > chance);
        let slope = steep.or_else(|| self.since.and_then(|since| since.slope_to(now)));
        let slope = slope.unwrap_or(0.0);
        let seconds = |time: Duration| time.as_secs_f64();
        let ahead = now.wait + steep.unwrap_or(0.0) * seconds(params.ahead);
        let wanted = (seconds(params.target) - now.wait) / seconds(params.settle).max(1e-3);
        let exact = (1.0 + wanted.clamp(-0.5, 0.5)) / (1.0 + slope);
        let beyond = now.wait >= seconds(params.target);
        if beyond && ahead > seconds(params.high) {
            self.calm = 0;
            // Above one it falls fast enough already.
            exact.clamp(least, 1.0)
        } else if ahead < seconds(params.low) {
            let probe = PROBE * params.haste.powi(self.calm);
            self.calm = (self.calm + 1).min(16);
            exact.max(1.0 + probe).min(2.0)
        } else {
            self.calm = 0;
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::RANKS;

    fn ranks(weight: f64) -> Vec<(Rank, f64)> {
        let rank = |number| Rank::from_number(number).unwrap();
        (0..u32::from(RANKS))
            .step_by(32)
            .map(|number| (rank(number), weight))
            .collect()
    }

    fn window(wait_ms: u64) -> Window {
        Window {
            length: Duration::from_secs(1),
            demand: ranks(10.0),
            done: 1000.0,
            wait: Some(Duration::from_millis(wait_ms)),
            idle: false,
            refused: 0.0,
        }
    }

    fn windows() -> impl Strategy<Value = Vec<Window>> {
        let demand = prop::collection::vec((0..u32::from(RANKS), 0u32..50), 0..30);
        let wait = prop::option::of(0u64..30_000);
        let one = (
            demand,
            wait,
            1u64..5000,
            0.0..500.0,
            prop_oneof![9 => Just(0.0), 1 => 0.0..1.0],
            prop::bool::weighted(0.2),
        )
            .prop_map(|(demand, wait, length, done, refused, idle)| Window {
                length: Duration::from_millis(length),
                demand: demand
                    .into_iter()
                    .map(|(rank, count)| (Rank::from_number(rank).unwrap(), count.into()))
                    .collect(),
                done,
                idle: idle && wait.is_some(),
                wait: wait.map(Duration::from_millis),
                refused,
            });
        prop::collection::vec(one, 1..60)
    }

    /// A cluster that does `capacity` times what is asked for; its queue and its level after each second.
    fn closed_loop(capacity: f64, seconds: usize, controller: &mut Controller) -> Vec<(f64, u16)> {
        let demand = ranks(10.0);
        let offered = 10.0 * demand.len() as f64;
        let done = offered * capacity;
        let mut queue: f64 = 0.0;
        (0..seconds)
            .map(|_| {
                let admitted = demand
                    .iter()
                    .filter(|(rank, _)| controller.level().admits(*rank));
                let admitted: f64 = admitted.map(|(_, weight)| weight).sum();
                queue = (queue + admitted - done).max(0.0);
                let level = controller.step(
                    &Params::default(),
                    &Window {
                        length: Duration::from_secs(1),
                        demand: demand.clone(),
                        done,
                        wait: Some(Duration::from_secs_f64(queue / done)),
                        idle: queue == 0.0 && admitted < done,
                        refused: 0.0,
                    },
                );
                (queue / done, level.ranks())
            })
            .collect()
    }

    fn reversals(levels: &[(f64, u16)]) -> usize {
        let moves: Vec<_> = levels
            .windows(2)
            .map(|pair| pair[0].1.cmp(&pair[1].1))
            .filter(|way| way.is_ne())
            .collect();
        moves.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    proptest! {
        #[test]
        fn a_step_moves_at_most_its_share_and_one_rank(windows in windows()) {
            let params = Params::default();
            let mut controller = Controller::default();
            for window in windows {
                let before = controller.level();
                let after = controller.step(&Params::default(), &window);
                let between = |low, high| controller.moving.demand.between(low, high);
                let admitted: f64 = between(Level::NONE, before).iter().sum();
                if controller.moving.idleness.is_long() {
                    prop_assert_eq!(after, Level::ALL);
                    continue;
                }
                let (moved, share): (Vec<f64>, f64) = if after < before {
                    (between(after, before), params.most)
                } else {
                    (between(before, after).into_iter().rev().collect(), 1.0)
                };
                let without_last: f64 = moved.iter().skip(1).sum();
                prop_assert!(without_last <= share * admitted + 1e-6, "{without_last} of {admitted}");
                if window.wait.is_none() && window.refused == 0.0 {
                    prop_assert_eq!(after, before);
                }
            }
        }

        #[test]
        fn a_constant_wait_within_the_band_changes_nothing(before in windows(), ms in 501u64..6000) {
            let mut controller = Controller::default();
            for window in before {
                controller.step(&Params::default(), &window);
            }
            // The first two compare with what was before.
            controller.step(&Params::default(), &window(ms));
            controller.step(&Params::default(), &window(ms));
            let held = controller.level();
            for _ in 0..50 {
                prop_assert_eq!(controller.step(&Params::default(), &window(ms)), held);
            }
        }

        #[test]
        fn of_the_same_past_a_longer_wait_never_admits_more(past in windows(), waits in (0u64..30_000, 0u64..30_000)) {
            let mut shorter = Controller::default();
            for window in past {
                shorter.step(&Params::default(), &window);
            }
            let mut longer = shorter.clone();
            let (low, high) = (waits.0.min(waits.1), waits.0.max(waits.1));
            prop_assert!(longer.step(&Params::default(), &window(high)) <= shorter.step(&Params::default(), &window(low)));
        }

        #[test]
        fn any_overload_settles_and_then_hardly_moves(capacity in 0.25f64..0.95) {
            let mut controller = Controller::default();
            let run = closed_loop(capacity, 600, &mut controller);
            let worst = run.iter().map(|(wait, _)| *wait).fold(0.0, f64::max);
            prop_assert!(worst < 12.0, "{worst} s");
            let late = &run[60..];
            prop_assert!(late.iter().all(|(wait, _)| *wait < 9.0), "{late:?}");
            prop_assert!(reversals(late) <= 18, "{} in 9 minutes", reversals(late));
        }
    }

    #[test]
    fn twice_and_three_times_the_work_are_brought_back_by_three_steps() {
        for (capacity, admitted) in [(0.5, 0.35..0.6), (1.0 / 3.0, 0.2..0.45)] {
            let mut controller = Controller::default();
            let run = closed_loop(capacity, 5, &mut controller);
            let share = f64::from(run[4].1) / f64::from(RANKS);
            assert!(admitted.contains(&share), "{share}: {run:?}");
        }
    }

    #[test]
    fn when_the_crowd_has_gone_everything_is_admitted_within_seconds() {
        let mut controller = Controller::default();
        closed_loop(1.0 / 3.0, 60, &mut controller);
        assert!(controller.level() < Level::ALL);
        let after = closed_loop(1.25, 10, &mut controller);
        assert_eq!(after[9].1, RANKS, "{after:?}");
    }

    /// After a window with this wait and share of refused connections.
    fn after(wait: Option<u64>, refused: f64, done: f64) -> Controller {
        let mut controller = Controller::default();
        controller.step(&Params::default(), &window(600));
        controller.step(
            &Params::default(),
            &Window {
                refused,
                done,
                wait: wait.map(Duration::from_millis),
                ..window(0)
            },
        );
        controller
    }

    #[test]
    fn connections_that_are_not_taken_shed_a_little_where_a_queue_agrees_and_it_comes_back() {
        for (wait, done) in [(Some(700), 1000.0), (None, 0.0)] {
            let mut controller = after(wait, 0.5, done);
            let share = f64::from(controller.level().ranks()) / f64::from(RANKS);
            assert!((0.85..0.95).contains(&share), "{wait:?}: {share}");
            for _ in 0..5 {
                controller.step(&Params::default(), &window(0));
            }
            assert_eq!(controller.level(), Level::ALL, "{wait:?}");
        }
    }

    #[test]
    fn connections_that_are_not_taken_shed_no_more_than_their_share() {
        let share = f64::from(after(Some(700), 0.06, 940.0).level().ranks()) / f64::from(RANKS);
        assert!((0.93..1.0).contains(&share), "{share}");
    }

    #[test]
    fn connections_that_are_not_taken_say_nothing_where_nothing_waits_or_they_are_few() {
        for (wait, refused, done) in [
            (Some(0), 1.0, 0.0),
            (Some(499), 1.0, 1000.0),
            (Some(700), 0.05, 1000.0),
            (None, 0.5, 1000.0),
        ] {
            assert_eq!(
                after(wait, refused, done).level(),
                Level::ALL,
                "{wait:?} {refused}"
            );
        }
    }

    #[test]
    fn two_idle_windows_in_a_row_admit_everything() {
        let mut controller = Controller::default();
        closed_loop(1.0 / 3.0, 60, &mut controller);
        let lowered = controller.level();
        let idle = Window {
            idle: true,
            ..window(0)
        };
        controller.step(&Params::default(), &idle);
        assert!(controller.level() >= lowered && controller.level() < Level::ALL);
        assert_eq!(controller.step(&Params::default(), &idle), Level::ALL);
    }
}
