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
//! saw servers switch between all and nothing. Four things differ here, the ranks are the same:
//! - *a dead band*: between `low` and `high` nothing moves;
//! - *steps as large as the need*: the wait of a queue rises by `admitted / done - 1` seconds a second
//!   (Little's law), so that the measured slope says by which factor too much is admitted. One step corrects
//!   it, bounded by `most`;
//! - *a queue for each class*: see below;
//! - *no step on what is not known yet*: after a step down the next figures are only looked at, because they
//!   were partly made before it.
//!
//! A class waits for what is queued of itself and of more important ones, because by priority those go first. So a level
//! falls into a class only where that wait is too long for it, however much is queued of less important ones, and rises
//! into it only where it is short.
//!
//! Where hosts have got cores since the last step, as a governor gives them, nothing is shed by figures that were made on
//! fewer: as much more is admitted as there are more cores, and the figures are only kept to compare the next with.
//!
//! Evidence of overload is a wait. Refused connections only hasten a correction ([`Window::refused`]), and after
//! two idle windows in a row everything is admitted.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::MovingLevel;
use super::evidence::EARLY_SIGN;
use crate::{CLASSES, Level, Rank};

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

/// How long what is queued will wait, by business class: a class with all that are more important, because by
/// priority those go first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits(Vec<Duration>);

impl Waits {
    /// Of each class from the most important on; those beyond the last wait as it does.
    pub fn by_class(waits: Vec<Duration>) -> Self {
        Self(waits)
    }

    /// The same in every class, where nothing is known of classes.
    pub fn of_all(wait: Duration) -> Self {
        Self(vec![wait])
    }

    /// Of this class.
    pub fn of(&self, class: u8) -> Duration {
        let known = self.0.get(usize::from(class)).or(self.0.last());
        known.copied().unwrap_or(Duration::ZERO)
    }

    /// Of whatever is queued.
    pub fn whole(&self) -> Duration {
        self.of(u8::MAX)
    }

    /// How much longer than others, class by class.
    pub fn beyond(&self, others: &Self) -> Self {
        self.with(others, Duration::saturating_sub)
    }

    /// The shorter of both, class by class.
    pub fn at_most(&self, others: &Self) -> Self {
        self.with(others, Duration::min)
    }

    fn with(&self, others: &Self, both: impl Fn(Duration, Duration) -> Duration) -> Self {
        let classes = (0..=u8::MAX).take(self.0.len().max(others.0.len()));
        let by_class = classes.map(|class| both(self.of(class), others.of(class)));
        Self(by_class.collect())
    }
}

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
    pub wait: Option<Waits>,
    /// Nothing waits, and cores are free.
    pub idle: bool,
    /// Share of their cores that hosts have got in addition; 0 where they have as many as before or fewer.
    pub gained: f64,
    /// Share of the requests that were sent whose connection was not taken: an early sign of overload (document
    /// 001, section 12.2) where it is more than closed connections and single resets take every day and what is
    /// queued agrees, or nothing is answered and nothing measured.
    pub refused: f64,
}

impl Window {
    /// The share of refused connections, where it counts.
    fn early_sign(&self, low: Duration) -> Option<f64> {
        let agrees = match &self.wait {
            Some(wait) => wait.whole() >= low,
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

#[derive(Clone, Debug)]
struct Reading {
    at: f64,
    waits: Waits,
}

impl Reading {
    fn wait(&self, class: u8) -> f64 {
        self.waits.of(class).as_secs_f64()
    }

    /// Seconds of wait that a second has added up to `now`.
    fn slope_to(&self, now: &Self, class: u8) -> Option<f64> {
        let passed = now.at - self.at;
        // A queue shrinks by what is done at most, so anything steeper is an error of measurement.
        (passed > 0.0).then(|| ((now.wait(class) - self.wait(class)) / passed).max(-0.9))
    }
}

/// A step that is wanted.
struct Correction {
    /// Times what is admitted.
    factor: f64,
    /// No further than to these levels.
    within: RangeInclusive<Level>,
}

impl Correction {
    const NONE: Self = Self {
        factor: 1.0,
        within: Level::NONE..=Level::ALL,
    };
}

/// Where the wait of a class leads.
struct Trend {
    /// Seconds now.
    wait: f64,
    /// Seconds by when a slope would count.
    ahead: f64,
    /// What brings the wait back to the target: times what is admitted.
    exact: f64,
}

impl Trend {
    fn is_too_long(&self, params: &Params) -> bool {
        self.wait >= params.target.as_secs_f64() && self.ahead > params.high.as_secs_f64()
    }

    fn is_short(&self, params: &Params) -> bool {
        self.ahead < params.low.as_secs_f64()
    }
}

/// The class of a level's last rank.
fn last_class(level: Level) -> u8 {
    let rank = Rank::from_number(u32::from(level.ranks()).saturating_sub(1));
    rank.map_or(0, Rank::class)
}

/// The class of the first rank that a level refuses.
fn next_class(level: Level) -> u8 {
    let rank = Rank::from_number(level.ranks().into());
    rank.map_or_else(|| last_class(level), Rank::class)
}

fn classes() -> impl DoubleEndedIterator<Item = u8> {
    (0..CLASSES).map(|class| class as u8)
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
    /// is demand. A window without a measurement changes nothing, unless it has an early sign or is idle. The second
    /// idle window in a row admits everything.
    pub fn step(&mut self, params: &Params, window: &Window) -> Level {
        self.now += window.length.as_secs_f64();
        self.moving
            .remember(&window.demand, window.length, params.half_life);
        let reading = window.wait.clone().map(|waits| Reading {
            at: self.now,
            waits,
        });
        let idle = self.moving.idleness.opens(window.idle);
        let gained = window.gained > 0.0;
        if gained {
            // How a wait moved on fewer cores tells nothing of how it moves on these.
            (self.last, self.since, self.calm) = (None, None, 0);
        }
        let measured = reading.as_ref().map(|reading| match gained {
            true => Correction {
                factor: 1.0 + window.gained.min(1.0),
                ..Correction::NONE
            },
            false => self.correction(params, reading, window.done),
        });
        let sign = window.early_sign(params.low);
        // Requests that were taken are served, so no more is shed than the share that was not.
        let signalled = sign.map(|share| 1.0 - share.min(REFUSAL).min(params.most));
        let correction = match (measured, signalled) {
            (None, None) => {
                if idle {
                    self.moving.open();
                }
                return self.level();
            }
            (Some(measured), None) => measured,
            (measured, Some(signalled)) => {
                self.calm = 0;
                let less = Correction {
                    factor: signalled,
                    within: Level::NONE..=Level::ALL,
                };
                measured
                    .filter(|measured| measured.factor < signalled)
                    .unwrap_or(less)
            }
        };
        let before = self.level();
        let (least, most) = correction.within.into_inner();
        match correction.factor {
            _ if idle => self.moving.open(),
            factor @ ..1.0 => self.moving.lower(1.0 - factor, NEAREST, least),
            1.0 => {}
            factor => self.moving.raise(factor - 1.0, NEAREST, most),
        }
        let level = self.level();
        self.fresh = level < before;
        let now = self.now;
        let old = |since: &Reading| now - since.at > LONGEST_S;
        if level != before || self.since.as_ref().is_none_or(old) {
            self.since = reading.clone().filter(|_| !self.fresh);
        }
        self.last = reading.or(self.last.take());
        level
    }

    /// By what the admitted weight is to be multiplied.
    fn correction(&mut self, params: &Params, now: &Reading, done: f64) -> Correction {
        if std::mem::take(&mut self.fresh) {
            return Correction::NONE;
        }
        let trend = |class| self.trend(class, params, now, done);
        let (last, next) = (last_class(self.level()), next_class(self.level()));
        let (down, up) = (trend(last), trend(next));
        if down.is_too_long(params) {
            // What is queued of less important classes delays nobody of this one.
            let first = classes().find(|class| trend(*class).is_too_long(params));
            let least = Level::just_refusing(Rank::new(first.unwrap_or(last), 0));
            self.calm = 0;
            Correction {
                // Above one it falls fast enough already.
                factor: down.exact.clamp(1.0 - params.most, 1.0),
                within: least..=Level::ALL,
            }
        } else if up.is_short(params) {
            let short = classes().rev().find(|class| trend(*class).is_short(params));
            let most = Level::just_admitting(Rank::new(short.unwrap_or(next), u8::MAX));
            let probe = PROBE * params.haste.powi(self.calm);
            self.calm = (self.calm + 1).min(16);
            Correction {
                factor: up.exact.max(1.0 + probe).min(2.0),
                within: Level::NONE..=most,
            }
        } else {
            self.calm = 0;
            Correction::NONE
        }
    }

    fn trend(&self, class: u8, params: &Params, now: &Reading, done: f64) -> Trend {
        let wait = now.wait(class);
        let steep = self
            .last
            .as_ref()
            .and_then(|last| last.slope_to(now, class));
        let chance = BEYOND_CHANCE / done.max(1.0).sqrt();
        let steep = steep.filter(|slope| slope.abs() > chance);
        let since = || self.since.as_ref()?.slope_to(now, class);
        let slope = steep.or_else(since).unwrap_or(0.0);
        let wanted = (params.target.as_secs_f64() - wait) / params.settle.as_secs_f64().max(1e-3);
        Trend {
            wait,
            ahead: wait + steep.unwrap_or(0.0) * params.ahead.as_secs_f64(),
            exact: (1.0 + wanted.clamp(-0.5, 0.5)) / (1.0 + slope),
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
            wait: Some(Waits::of_all(Duration::from_millis(wait_ms))),
            idle: false,
            gained: 0.0,
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
            prop_oneof![9 => Just(0.0), 1 => 0.0..3.0],
        )
            .prop_map(
                |(demand, wait, length, done, refused, idle, gained)| Window {
                    length: Duration::from_millis(length),
                    demand: demand
                        .into_iter()
                        .map(|(rank, count)| (Rank::from_number(rank).unwrap(), count.into()))
                        .collect(),
                    done,
                    idle: idle && wait.is_some(),
                    wait: wait.map(|ms| Waits::of_all(Duration::from_millis(ms))),
                    gained,
                    refused,
                },
            );
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
                        wait: Some(Waits::of_all(Duration::from_secs_f64(queue / done))),
                        idle: queue == 0.0 && admitted < done,
                        gained: 0.0,
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

    /// Of class 0 as long as the first says, of all others as long as the second.
    fn of_two(first_ms: u64, all_ms: u64) -> Window {
        let mut waits = vec![Duration::from_millis(all_ms); 2];
        waits[0] = Duration::from_millis(first_ms);
        Window {
            wait: Some(Waits::by_class(waits)),
            ..window(0)
        }
    }

    fn stepped(controller: &mut Controller, times: usize, window: &Window) -> Level {
        for _ in 0..times {
            controller.step(&Params::default(), window);
        }
        controller.level()
    }

    #[test]
    fn nothing_is_shed_by_a_wait_that_grew_on_fewer_cores_and_what_was_shed_there_comes_back() {
        let gained = |wait_ms, gained| Window {
            gained,
            ..window(wait_ms)
        };
        let mut controller = Controller::default();
        controller.step(&Params::default(), &window(0));
        // Without more cores this is a wait that leads out of the band.
        let mut alone = controller.clone();
        assert!(alone.step(&Params::default(), &window(5_000)) < Level::ALL);
        let level = controller.step(&Params::default(), &gained(5_000, 1.0));
        assert_eq!(level, Level::ALL);
        assert_eq!(stepped(&mut controller, 1, &window(4_000)), Level::ALL);
        // On twice the cores twice as much is admitted at once: the first step up would add a twentieth.
        let half = Level::just_refusing(Rank::new(CLASSES as u8 / 2, 0));
        let mut fallen = Controller::starting_at(half);
        let mut slow = fallen.clone();
        assert!(fallen.step(&Params::default(), &gained(1_000, 1.0)) >= half_as_many_again(half));
        assert!(slow.step(&Params::default(), &window(1_000)) < half_as_many_again(half));
        // Who waits too long on all of them is refused as ever.
        let long = stepped(&mut controller, 20, &window(60_000));
        assert!(long < Level::ALL);
    }

    fn half_as_many_again(level: Level) -> Level {
        Level::admitting(level.ranks() / 2 * 3)
    }

    #[test]
    fn a_queue_of_unimportant_work_refuses_nothing_that_goes_before_it() {
        let mut controller = Controller::default();
        let level = stepped(&mut controller, 200, &of_two(100, 60_000));
        assert_eq!(level, Level::just_refusing(Rank::new(1, 0)));
        // It is admitted again only when it has little to wait for.
        assert_eq!(stepped(&mut controller, 50, &of_two(0, 30_000)), level);
        assert_eq!(stepped(&mut controller, 50, &of_two(0, 0)), Level::ALL);
    }

    #[test]
    fn a_queue_of_important_work_refuses_important_work_and_it_comes_back_first() {
        let mut controller = Controller::default();
        let low = stepped(&mut controller, 40, &of_two(20_000, 60_000));
        assert!(low < Level::just_refusing(Rank::new(1, 0)));
        let back = stepped(&mut controller, 60, &of_two(0, 60_000));
        assert_eq!(back, Level::just_refusing(Rank::new(1, 0)));
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
                wait: wait.map(|ms| Waits::of_all(Duration::from_millis(ms))),
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
