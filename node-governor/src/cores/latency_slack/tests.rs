// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::jobs::{Queue, State};

const TICK_MS: u64 = 50;

fn job(threads: u32) -> Job {
    Job {
        name: format!("of {threads}"),
        queue: if threads < 3 {
            Queue::Short
        } else {
            Queue::Long
        },
        threads,
    }
}

/// Plays a service whose use and latency follow from how many cores it has and how fast they are.
struct Play {
    policy: LatencySlack,
    jobs: Vec<State>,
    ms: u64,
    cores: usize,
    speed: f64,
}

impl Play {
    /// The latency is that of the tick.
    fn new(params: Params) -> Self {
        Self::with_window(params, Duration::ZERO)
    }

    fn with_window(params: Params, window: Duration) -> Self {
        let machine: Cores = (0..8).collect();
        let jobs = [job(2), job(4)];
        let params = Params { window, ..params };
        let policy = LatencySlack::new(params, &machine, &jobs).unwrap();
        Self {
            policy,
            jobs: vec![State::Running; 2],
            ms: 0,
            cores: 1,
            speed: 1.0,
        }
    }

    fn tick(&mut self, cpu: Option<f64>, p95_us: Option<u64>) -> CorePlan {
        self.ms += TICK_MS;
        let plan = self.policy.plan(&Seen {
            now: Nanos(self.ms * 1_000_000),
            cpu,
            p95: p95_us.map(Duration::from_micros),
            p95_at: Nanos(self.ms * 1_000_000),
            jobs: self.jobs.clone(),
            ..Seen::default()
        });
        (self.cores, self.speed) = (plan.service.len(), plan.speed.unwrap_or(1.0));
        plan
    }

    /// For so many ticks; the reasons that changed something.
    fn play(&mut self, ticks: u64, of: impl Fn(&Self) -> (f64, u64)) -> Vec<Reason> {
        let mut reasons = Vec::new();
        for _ in 0..ticks {
            let (cpu, p95) = of(self);
            let plan = self.tick(Some(cpu), Some(p95));
            if plan.reason != Reason::Same {
                reasons.push(plan.reason);
            }
        }
        reasons
    }
}

#[test]
fn a_core_is_spared_where_slack_and_use_allow_and_taken_back_at_once_when_use_grows() {
    let mut play = Play::new(Params::default());
    assert_eq!(play.play(30, |_| (0.3, 400)), [Reason::Loose]);
    assert_eq!(play.cores, 1);
    let plan = play.tick(Some(0.95), Some(400));
    assert_eq!((plan.reason, plan.service.len()), (Reason::Busy, 2));
}

#[test]
fn the_trend_tells_a_step_that_has_only_begun() {
    let begun = |trend| {
        let mut play = Play::new(Params {
            trend,
            ..Params::default()
        });
        play.play(30, |_| (0.3, 400));
        play.tick(Some(0.5), Some(400)).reason
    };
    assert_eq!(begun(1.5), Reason::Busy);
    assert_eq!(begun(0.0), Reason::Same);
}

#[test]
fn a_core_that_was_spared_in_error_comes_back_and_the_same_load_does_not_cost_it_again() {
    let mut play = Play::new(Params::default());
    let load = |play: &Play| {
        if play.cores == 1 {
            (0.5, 1490)
        } else {
            (0.6, 500)
        }
    };
    let reasons = play.play(200, load);
    assert_eq!(reasons, [Reason::Loose, Reason::Tight]);
    assert_eq!(play.cores, 2);
}

#[test]
fn a_tick_longer_than_the_calm_is_enough_alone_and_a_shorter_one_is_not() {
    let looks = |tick_ms: u64| {
        let mut play = Play::new(Params::default());
        play.play(30, |_| (1.5, 400));
        assert_eq!(play.cores, 2);
        let since = play.ms;
        (1..9).find(|look| {
            play.ms = since + look * tick_ms - TICK_MS;
            play.tick(Some(0.3), Some(400)).service.len() == 1
        })
    };
    assert_eq!(looks(400), Some(1));
    assert_eq!(looks(50), Some(2));
}

#[test]
fn the_margin_is_smaller_while_use_is_steady() {
    let near = |other: f64| {
        let mut play = Play::new(Params::default());
        play.play(30, |_| (0.3, 400));
        assert_eq!(play.cores, 1);
        play.play(40, |play| {
            let odd = play.ms / TICK_MS % 2 == 1;
            (if odd { other } else { 0.3 }, 1450)
        })
    };
    assert_eq!(near(0.3), []);
    assert_eq!(near(0.4).first(), Some(&Reason::Tight));
}

#[test]
fn frequency_rises_when_there_are_no_more_cores_and_goes_first() {
    let mut play = Play::new(Params {
        frequency_steps: 2,
        ..Params::default()
    });
    play.play(100, |_| (0.3, 400));
    assert_eq!((play.cores, play.speed), (1, 0.0));
    // Nothing but the highest frequency is enough.
    let hard = |play: &Play| {
        let relief = 1.0 - 0.2 * (play.cores - 1) as f64 - 0.2 * play.speed;
        (0.3, (2200.0 * relief) as u64)
    };
    let reasons = play.play(60, hard);
    assert_eq!(reasons, [Reason::Tight; 3]);
    assert_eq!((play.cores, play.speed), (2, 1.0));
}

#[test]
fn what_did_not_help_is_taken_back_and_not_tried_again_for_a_while() {
    let mut play = Play::new(Params {
        frequency_steps: 1,
        ..Params::default()
    });
    play.play(100, |_| (0.3, 400));
    assert_eq!((play.cores, play.speed), (1, 0.0));
    let reasons = play.play(100, |_| (0.3, 2000));
    assert_eq!(reasons, [Reason::Tight, Reason::Reverted]);
    assert_eq!(play.cores, 1);
}

/// A service whose latency is measured once a second, of the requests of ten.
struct Window {
    play: Play,
    measured: Option<(Nanos, u64)>,
    /// Of each tick.
    latencies: Vec<u64>,
}

impl Window {
    fn new(elastic: Cores) -> Self {
        let params = Params {
            elastic,
            batch: [6, 7].into(),
            measured: true,
            ..Params::default()
        };
        Self {
            play: Play::with_window(params, Duration::from_secs(10)),
            measured: None,
            latencies: Vec::new(),
        }
    }

    /// For so many ticks, with a latency that follows from the cores; what changed, and in which tick.
    fn play(&mut self, ticks: u64, latency: impl Fn(usize) -> u64) -> Vec<(u64, Reason)> {
        let mut reasons = Vec::new();
        for tick in 0..ticks {
            let play = &mut self.play;
            play.ms += TICK_MS;
            let now = Nanos(play.ms * 1_000_000);
            self.latencies.push(latency(play.cores));
            if play.ms.is_multiple_of(1000) || self.measured.is_none() {
                let late = self.latencies.len().saturating_sub(200);
                let mut window = self.latencies[late..].to_vec();
                window.sort_unstable();
                self.measured = Some((now, window[(window.len() - 1) * 95 / 100]));
            }
            let (at, p95) = self.measured.unwrap();
            let plan = play.policy.plan(&Seen {
                now,
                cpu: Some(0.3),
                p95: Some(Duration::from_micros(p95)),
                p95_at: at,
                jobs: play.jobs.clone(),
                ..Seen::default()
            });
            play.cores = plan.service.len();
            if plan.reason != Reason::Same {
                reasons.push((tick, plan.reason));
            }
        }
        reasons
    }
}

#[test]
fn a_core_that_helped_is_kept_though_the_latency_is_of_older_requests_for_a_while() {
    let mut service = Window::new([1].into());
    service.play(600, |_| 400);
    assert_eq!(service.play.cores, 1);
    let reasons = service.play(600, |cores| if cores == 1 { 2000 } else { 1300 });
    let reasons: Vec<_> = reasons.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons, [Reason::Tight]);
    assert_eq!(service.play.cores, 2);
}

#[test]
fn a_core_more_comes_with_each_measurement_while_a_service_is_late_and_none_goes_before_its_window()
{
    let mut service = Window::new((1..5).collect());
    service.play(4 * 600, |_| 400);
    assert_eq!(service.play.cores, 1);
    let late = service.play(120, |cores| if cores < 5 { 9000 } else { 400 });
    assert!(
        late.iter().all(|(_, reason)| *reason == Reason::Tight),
        "{late:?}"
    );
    assert_eq!(service.play.cores, 5);
    let spared = service.play(1200, |_| 400);
    assert!(
        spared.iter().all(|(_, reason)| *reason == Reason::Loose),
        "{spared:?}"
    );
    let apart = spared.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 200);
    assert!(spared.len() > 1 && apart, "{spared:?}");
}

#[test]
fn pressure_from_the_mesh_brings_all_at_once() {
    let params = || Params {
        elastic: [1, 2, 3].into(),
        batch: [4, 5].into(),
        frequency_steps: 3,
        ..Params::default()
    };
    for (pressed, reason) in [(true, Reason::Refused), (false, Reason::Same)] {
        let mut play = Play::new(params());
        play.play(200, |_| (0.1, 400));
        assert_eq!((play.cores, play.speed), (1, 0.0));
        let plan = play.policy.plan(&Seen {
            now: Nanos((play.ms + TICK_MS) * 1_000_000),
            cpu: Some(0.1),
            p95: Some(Duration::from_micros(400)),
            pressed,
            jobs: play.jobs.clone(),
            ..Seen::default()
        });
        let all = reason == Reason::Refused;
        assert_eq!(plan.reason, reason);
        assert_eq!(
            (plan.service.len(), plan.speed),
            if all { (4, Some(1.0)) } else { (1, Some(0.0)) }
        );
    }
}

#[test]
fn where_latency_is_measured_its_silence_counts_though_use_is_known() {
    let mut play = Play::new(Params {
        measured: true,
        ..Params::default()
    });
    play.play(100, |_| (0.3, 400));
    assert_eq!(play.cores, 1);
    let quiet = Seen {
        cpu: Some(0.1),
        quiet: true,
        jobs: play.jobs.clone(),
        ..Seen::default()
    };
    for _ in 0..100 {
        play.ms += TICK_MS;
        let now = Nanos(play.ms * 1_000_000);
        let plan = play.policy.plan(&Seen {
            now,
            ..quiet.clone()
        });
        assert_eq!((plan.service.len(), plan.reason), (1, Reason::Same));
    }
    assert_eq!(play.tick(Some(0.3), None).reason, Reason::Held);
    let last = (0..40).map(|_| play.tick(Some(0.3), None)).last().unwrap();
    assert_eq!((last.reason, last.service.len()), (Reason::Safe, 2));
}

#[test]
fn silence_holds_and_then_gives_the_service_all() {
    let mut play = Play::new(Params::default());
    play.play(30, |_| (0.3, 400));
    assert_eq!(play.tick(None, None).reason, Reason::Held);
    assert_eq!(play.cores, 1);
    let last = (0..40)
        .map(|_| play.tick(Some(f64::NAN), None))
        .last()
        .unwrap();
    assert_eq!((last.reason, last.service.len()), (Reason::Safe, 2));
}

#[test]
fn use_alone_will_do_where_nobody_measures_latency() {
    let mut play = Play::new(Params::default());
    for _ in 0..30 {
        play.tick(Some(0.3), None);
    }
    assert_eq!(play.cores, 1);
    assert_eq!(play.tick(Some(0.7), None).reason, Reason::Busy);
}

#[test]
fn the_last_job_gets_the_core_that_is_free_where_it_has_threads_for_it() {
    let last = |wide: bool| {
        let mut play = Play::new(Params::default());
        play.jobs[usize::from(wide)] = State::Running;
        play.jobs[usize::from(!wide)] = State::Finished;
        play.play(30, |_| (0.3, 400));
        let plan = play.tick(Some(0.3), Some(400));
        (plan.service, plan.jobs[usize::from(wide)].cores.clone())
    };
    assert_eq!(last(true), ([0].into(), [1, 2, 3].into()));
    assert_eq!(last(false), ([0, 1].into(), [2, 3].into()));
}

/// A fault, and how it is refused.
type Case<'a> = (&'a dyn Fn(&mut Params), &'a str);

#[test]
fn sets_and_shares_that_cannot_be_are_refused_with_field_and_reason() {
    let machine: Cores = (0..4).collect();
    let refused = |change: &dyn Fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        params.check(&machine, &[]).unwrap_err().to_string()
    };
    let cases: [Case; 6] = [
        (&|params| params.least = Cores::NONE, "least: has no cores"),
        (
            &|params| params.batch = [1].into(),
            "batch: 1: in elastic, too",
        ),
        (
            &|params| params.batch = [9].into(),
            "batch: the machine has cores 0-3, and no 9",
        ),
        (
            &|params| params.target = Duration::ZERO,
            "target: is nothing",
        ),
        (
            &|params| params.tight = 0.3,
            "tight: 0.3 is not above 0 and at most 0.2",
        ),
        (
            &|params| params.trend = f64::NAN,
            "trend: is not a number from 0 on",
        ),
    ];
    for (change, reason) in cases {
        assert_eq!(refused(change), reason);
    }
}
