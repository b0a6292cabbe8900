// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::cores::Act;
use crate::jobs::{Queue, State};

fn jobs(names: &[&str]) -> Vec<Job> {
    let of = |name: &&str| Job {
        name: (*name).to_owned(),
        queue: Queue::Long,
        threads: 2,
    };
    names.iter().map(of).collect()
}

fn step(job: &str, node: &str, cores: Cores, after: &[&str]) -> Step {
    Step {
        job: job.to_owned(),
        node: node.to_owned(),
        cores,
        after: after.iter().map(|job| (*job).to_owned()).collect(),
    }
}

fn node(name: &str, cores: u32, service: Cores) -> PlanNode {
    PlanNode {
        name: name.to_owned(),
        cores: (0..cores).collect(),
        service,
    }
}

/// Document 004's 8-core node, with one job of the other.
fn params() -> Params {
    Params {
        nodes: vec![
            node("eight", 8, Cores::NONE),
            node("two", 2, Cores::from([0])),
        ],
        steps: vec![
            step("freqmine", "eight", (0..7).collect(), &[]),
            step("blackscholes", "eight", (0..5).collect(), &["freqmine"]),
            step("fft", "eight", (5..8).collect(), &["freqmine"]),
            step("canneal", "eight", (0..4).collect(), &["blackscholes"]),
            step("small", "two", Cores::from([1]), &[]),
        ],
        ..Params::default()
    }
}

const NAMES: [&str; 5] = ["freqmine", "blackscholes", "fft", "canneal", "small"];

fn acts(states: [State; 5]) -> Vec<Act> {
    let mut plan = StaticPlan::new(&params(), "eight", &jobs(&NAMES)).unwrap();
    let seen = Seen {
        jobs: states.to_vec(),
        ..Seen::default()
    };
    plan.plan(&seen).jobs.iter().map(|job| job.act).collect()
}

#[test]
fn a_job_starts_when_those_before_it_have_ended_well_or_not() {
    use Act::{Done, Run, Wait};
    use State::{Failed, Finished, Running, Waiting};
    let start = [Waiting; 5];
    assert_eq!(acts(start), [Run, Wait, Wait, Wait, Wait]);
    let first = [Failed, Waiting, Waiting, Waiting, Waiting];
    assert_eq!(acts(first), [Done, Run, Run, Wait, Wait]);
    let second = [Finished, Finished, Running, Waiting, Waiting];
    assert_eq!(acts(second), [Done, Done, Run, Run, Wait]);
}

#[test]
fn a_node_runs_only_its_own_jobs_beside_the_service() {
    let mut plan = StaticPlan::new(&params(), "two", &jobs(&NAMES)).unwrap();
    let plan = plan.plan(&Seen::default());
    assert_eq!(plan.service, Cores::from([0]));
    let running: Vec<usize> = (0..5)
        .filter(|job| plan.jobs[*job].act == Act::Run)
        .collect();
    assert_eq!(running, [4]);
    assert_eq!(plan.jobs[4].cores, Cores::from([1]));
}

/// What the node of two cores does with its job, which is so far, while that is known of fft.
fn small(state: State, fft: Option<bool>) -> Act {
    let mut params = params();
    params.steps[4].after = vec!["fft".to_owned()];
    params.check(&jobs(&NAMES)).unwrap();
    // As one node has it.
    params.steps.drain(..4);
    params.elsewhere = vec!["canneal".to_owned(), "fft".to_owned()];
    let mut plan = StaticPlan::new(&params, "two", &jobs(&["small"])).unwrap();
    let seen = Seen {
        jobs: vec![state],
        elsewhere: vec![Some(true), fft],
        ..Seen::default()
    };
    plan.plan(&seen).jobs[0].act
}

#[test]
fn the_silence_of_another_node_starts_nothing_and_stops_nothing() {
    use Act::{Pause, Run, Wait};
    use State::{Paused, Running, Waiting};
    assert_eq!(small(Waiting, None), Wait);
    assert_eq!(small(Waiting, Some(false)), Wait);
    assert_eq!(small(Waiting, Some(true)), Run);
    assert_eq!(small(Running, None), Run);
    assert_eq!(small(Paused, None), Run);
    assert_eq!(small(Running, Some(true)), Run);
    // As here, where a job that has ended is forgotten.
    assert_eq!(small(Running, Some(false)), Pause);
}

fn refused(change: impl Fn(&mut Params)) -> String {
    let mut params = params();
    change(&mut params);
    params.check(&jobs(&NAMES)).unwrap_err().to_string()
}

#[test]
fn a_circle_is_refused_with_the_names_in_it() {
    let error = refused(|params| {
        params.steps[0].after = vec!["canneal".to_owned()];
        params.steps[2].after.clear();
    });
    assert_eq!(
        error,
        "steps: freqmine after canneal after blackscholes after freqmine: a circle"
    );
    let error = refused(|params| params.steps[4].after = vec!["small".to_owned()]);
    assert_eq!(error, "steps: small after small: a circle");
}

/// A fault, and how it is refused.
type Case<'a> = (&'a dyn Fn(&mut Params), &'a str);

#[test]
fn plans_that_cannot_be_are_refused_with_field_and_reason() {
    let cases: [Case; 7] = [
        (
            &|params| params.steps[0].cores = Cores::from([7, 8]),
            "steps.freqmine.cores: the machine has cores 0-7, and no 8",
        ),
        (
            &|params| params.steps[0].cores = Cores::NONE,
            "steps.freqmine.cores: has no cores",
        ),
        (
            &|params| params.steps[4].cores = Cores::from([0, 1]),
            "steps.small.cores: 0: the service's",
        ),
        (
            &|params| params.steps[0].node = "nine".to_owned(),
            "steps.freqmine.node: there is no node \"nine\"",
        ),
        (
            &|params| params.steps[4].after = vec!["vips".to_owned()],
            "steps.small.after: vips: there is no such step",
        ),
        (
            &|params| params.steps[0].job = "vips".to_owned(),
            "steps.vips: there is no such job",
        ),
        (
            &|params| {
                params.steps.remove(4);
            },
            "steps: small has none",
        ),
    ];
    for (change, reason) in cases {
        assert_eq!(refused(change), reason);
    }
}
