// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::cores::{Act, JobPlan};
use crate::jobs::spec::{Command, Source};
use crate::jobs::{Job, Queue};

fn book(takes: &[Option<u64>]) -> SharesBook {
    let spec = |(index, takes): (usize, &Option<u64>)| Spec {
        job: Job {
            name: format!("job{index}"),
            queue: Queue::Long,
            threads: 2,
        },
        source: Source::Command(Command::default()),
        takes: takes.map(Duration::from_secs),
    };
    let specs: Vec<Spec> = takes.iter().enumerate().map(spec).collect();
    SharesBook::new(&specs)
}

fn sensed(jobs: &[State]) -> Sensed {
    Sensed {
        jobs: jobs.to_vec(),
        ..Sensed::default()
    }
}

fn plan(service: Cores, jobs: &[Cores], reason: Reason) -> CorePlan {
    let job = |cores: &Cores| JobPlan {
        act: Act::Run,
        cores: cores.clone(),
        threads: 1,
        ..JobPlan::default()
    };
    CorePlan {
        service,
        jobs: jobs.iter().map(job).collect(),
        reason,
        ..CorePlan::default()
    }
}

fn at(seconds: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

#[test]
fn time_counts_for_the_state_that_a_job_was_in() {
    use State::{Failed, Paused, Running, Waiting};
    let mut book = book(&[None]);
    let states = [
        Waiting, Running, Running, Paused, Paused, Running, Paused, Failed, Failed,
    ];
    for (second, state) in states.into_iter().enumerate() {
        let plan = plan([0].into(), &[[1].into()], Reason::Busy);
        book.decided(at(second as u64), &sensed(&[state]), &plan, false);
    }
    let job = &book.jobs[0];
    assert_eq!(job.ran, Duration::from_secs(3));
    // The last second of them is the one in which it ended.
    assert_eq!(job.paused, Duration::from_secs(4));
    assert_eq!((job.pauses, job.state), (2, Failed));
    assert!(job.cores.is_empty());
}

#[test]
fn the_first_plan_is_no_move_and_what_stays_keeps_its_reason() {
    let mut book = book(&[]);
    let plans = [
        plan([0].into(), &[], Reason::Calm),
        plan([0].into(), &[], Reason::Same),
        plan([0, 1].into(), &[], Reason::Busy),
        plan([0, 1].into(), &[], Reason::Same),
    ];
    let mut seen = Vec::new();
    for (second, plan) in plans.iter().enumerate() {
        book.decided(at(second as u64), &sensed(&[]), plan, second == 2);
        seen.push((book.moves, book.reason, book.pressed));
    }
    assert_eq!(
        seen,
        [
            (0, Reason::Calm, false),
            (0, Reason::Calm, false),
            (1, Reason::Busy, true),
            (1, Reason::Busy, false),
        ]
    );
}

#[test]
fn a_job_that_is_about_to_be_frozen_is_still_where_it_was() {
    let mut book = book(&[None]);
    let run = plan([0].into(), &[[1].into()], Reason::Calm);
    let pause = plan([0, 1].into(), &[Cores::NONE], Reason::Busy);
    let mut seen = Vec::new();
    for (second, state, plan) in [
        (0, State::Running, &run),
        (1, State::Running, &pause),
        (2, State::Paused, &pause),
        (3, State::Paused, &run),
        (4, State::Running, &pause),
    ] {
        book.decided(at(second), &sensed(&[state]), plan, false);
        seen.push(book.jobs[0].cores.to_string());
    }
    assert_eq!(seen, ["1", "1", "", "", "1"]);
}

#[test]
fn progress_is_a_share_of_the_work_where_all_of_it_is_known() {
    let mut book = book(&[Some(300), Some(100)]);
    let plan = plan([0].into(), &[[1].into(), Cores::NONE], Reason::Calm);
    let states = [State::Running, State::Failed];
    book.decided(at(0), &sensed(&states), &plan, false);
    assert_eq!(book.progress().share, None, "its CPU time is not known");
    let facts = Facts {
        cpu: Some(Duration::from_secs(150)),
        trouble: Some("late".to_owned()),
        ..Facts::default()
    };
    book.job(0, &facts);
    book.job(7, &facts);
    let progress = Progress {
        jobs: 2,
        ended: 1,
        failed: 1,
        share: Some(0.625),
    };
    assert_eq!(book.progress(), progress);
    assert_eq!(book.jobs[0].threads, 2, "as configured");
    book.jobs[1].takes = None;
    assert_eq!(book.progress().share, None);
}

#[test]
fn every_name_of_a_state_is_of_that_state() {
    for state in STATES {
        assert_eq!(state_named(state_name(state)), Some(state));
    }
    assert_eq!(state_named("gone"), None);
}

proptest! {
    #[test]
    fn no_time_is_counted_twice_and_none_is_lost_while_a_job_lives(
        steps in prop::collection::vec((0..5usize, 0..1000u64), 1..50),
    ) {
        let mut book = book(&[None]);
        let plan = plan([0].into(), &[[1].into()], Reason::Same);
        let (mut now, mut alive, mut before) = (at(1), Duration::ZERO, None);
        for (index, ms) in steps {
            let state = STATES[index];
            now = Nanos(now.0 + ms * 1_000_000);
            book.decided(now, &sensed(&[state]), &plan, false);
            let lives = |state: State| matches!(state, State::Running | State::Paused);
            if let Some(before) = before {
                let counts = if state.has_ended() { lives(before) } else { lives(state) };
                alive += Duration::from_millis(if counts { ms } else { 0 });
            }
            before = Some(state);
        }
        prop_assert_eq!(book.jobs[0].ran + book.jobs[0].paused, alive);
    }
}
