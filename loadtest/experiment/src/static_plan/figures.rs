// SPDX-License-Identifier: Apache-2.0
//! What the rounds of a way say together.

use weir_memcached_load::interval::Figures as Interval;

use crate::colocation::figures::{Violations, served_qps, typical_p95_ms};
use crate::static_plan::rounds::Round;
use crate::static_plan::way::{Step, Way, node_of};

/// Document 004's limit of an interval's p95 (part 3.1).
pub const DOCUMENT_SLO_US: u64 = 2_000;

/// Of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean,
    pub mean: f64,
    /// and the standard deviation of just these, as document 004 has it.
    pub deviation: f64,
}

/// Of a way over its rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Until all jobs had ended.
    pub makespan_s: Mean,
    /// Of the SLO that was found.
    pub violations: Violations,
    /// Of [`DOCUMENT_SLO_US`].
    pub document_violations: Violations,
    /// In milliseconds, the upper median of the intervals' p95.
    pub p95_ms: f64,
    /// Requests that were answered, a second.
    pub served_qps: f64,
}

/// Of a job over the rounds of a way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobFigures {
    /// From the round's start to the job's.
    pub began_s: Mean,
    /// From its start to its end.
    pub took_s: Mean,
    /// From the last end that it waits for to its start; none where it waits for none.
    pub later_s: Option<Mean>,
}

/// None of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> Option<Mean> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / count).sqrt();
    (!values.is_empty()).then_some(Mean { mean, deviation })
}

fn of_way(rounds: &[Round], way: Way) -> impl Iterator<Item = &Round> {
    rounds.iter().filter(move |round| round.way == way)
}

/// None where the way was not run.
#[must_use]
pub fn of(rounds: &[Round], way: Way) -> Option<Figures> {
    let makespans: Vec<f64> = of_way(rounds, way).map(|round| round.makespan_s).collect();
    let all: Vec<&Interval> = of_way(rounds, way)
        .flat_map(|round| &round.intervals)
        .collect();
    let violations = |violates: &dyn Fn(&Interval) -> bool| Violations {
        intervals: all.len() as u64,
        violated: all.iter().filter(|one| violates(one)).count() as u64,
    };
    Some(Figures {
        makespan_s: mean(&makespans)?,
        violations: violations(&|one| one.violated),
        document_violations: violations(&|one| {
            one.latency.p95_us.is_none_or(|us| us > DOCUMENT_SLO_US)
        }),
        p95_ms: typical_p95_ms(&all),
        served_qps: served_qps(all),
    })
}

/// None where the job did not run once in each round.
#[must_use]
pub fn of_job(rounds: &[Round], way: Way, step: &Step) -> Option<JobFigures> {
    let (mut began, mut took, mut later) = (Vec::new(), Vec::new(), Vec::new());
    for round in of_way(rounds, way) {
        let (from, to) = round.once(step.job)?;
        began.push(from);
        took.push(to - from);
        let ends = step.after.iter().filter_map(|job| round.once(job));
        later.extend(ends.map(|(_, end)| from - end).reduce(f64::min));
    }
    Some(JobFigures {
        began_s: mean(&began)?,
        took_s: mean(&took)?,
        later_s: mean(&later),
    })
}

/// Whether a job ran once, well, and on its node.
#[must_use]
pub fn ran_once(round: &Round, step: &Step) -> bool {
    let of_job = round.courses.iter().filter(|one| one.job == step.job);
    // No other governor tells of it.
    let nodes: Vec<&str> = of_job.map(|course| &*course.node).collect();
    round.once(step.job).is_some() && nodes == [step.node]
}

/// A wait of the plan, as it went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wait {
    /// For a job of another node.
    pub across: bool,
    /// The job did not begin before the end of the other one.
    pub kept: bool,
}

/// Of all steps of a round.
#[must_use]
pub fn waits(round: &Round) -> Vec<Wait> {
    let steps = round.way.steps();
    let of_step = |step: &Step| {
        let began = round.once(step.job).map(|(began, _)| began);
        let node = step.node;
        step.after.iter().map(move |before| Wait {
            across: node_of(before) != Some(node),
            kept: match (began, round.once(before)) {
                (Some(began), Some((_, ended))) => began >= ended,
                _ => false,
            },
        })
    };
    steps.iter().flat_map(of_step).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use weir_memcached_load::interval::{Counts, Latency};

    use super::*;
    use crate::static_plan::timeline::Course;
    use crate::static_plan::way::ends;

    /// Of a second.
    pub(crate) fn interval(start_s: f64, p95_us: u64, violated: bool) -> Interval {
        Interval {
            interval: 0,
            start_s,
            length_s: 1.0,
            target_qps: 12.0,
            achieved_qps: 10.0,
            counts: Counts::default(),
            latency: Latency {
                p95_us: Some(p95_us),
                ..Latency::default()
            },
            client_late_p95_us: None,
            in_flight_max: 0,
            violated,
        }
    }

    /// Jobs of a second each, on cores of their own.
    pub(crate) fn round(way: Way) -> Round {
        let steps = way.steps();
        let ends = ends(way, &|_| 1.0);
        let course = |(step, end): (&Step, &f64)| {
            let ends_of = |job: &&str| {
                let index = steps.iter().position(|other| other.job == *job).unwrap();
                ends[index]
            };
            let began = step.after.iter().map(ends_of).fold(0.0, f64::max);
            Course {
                job: step.job.to_owned(),
                node: step.node.to_owned(),
                began_ms: vec![1_000 + (1e3 * began) as u64],
                ended_ms: vec![(1_000 + (1e3 * end) as u64, Some(0))],
            }
        };
        Round {
            repeat: 0,
            way,
            zero_ms: 1_000,
            makespan_s: ends.iter().copied().fold(0.0, f64::max),
            courses: steps.iter().zip(&ends).map(course).collect(),
            intervals: vec![interval(0.0, 1_500, true), interval(1.0, 2_001, true)],
        }
    }

    #[test]
    fn a_mean_has_the_deviation_of_its_values() {
        // Document 004's 0.47: three times of which one is a second longer.
        let found = mean(&[1.0, 1.0, 2.0]).unwrap();
        assert_eq!((found.deviation * 100.0).round(), 47.0);
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn both_limits_are_counted_and_times_are_means() {
        let mut slow = round(Way::Across);
        slow.makespan_s += 2.0;
        slow.intervals.push(interval(2.0, 1, false));
        let rounds = [round(Way::Across), slow, round(Way::AtOnce)];
        let found = of(&rounds, Way::Across).unwrap();
        assert_eq!(found.makespan_s.deviation, 1.0);
        assert_eq!(
            (found.violations.violated, found.violations.intervals),
            (4, 5)
        );
        assert_eq!(found.document_violations.violated, 2);
        assert_eq!(of(&rounds, Way::Apart), None);
        let steps = Way::Across.steps();
        let canneal = steps.iter().find(|step| step.job == "canneal").unwrap();
        let job = of_job(&rounds, Way::Across, canneal).unwrap();
        assert_eq!(
            job.later_s,
            Some(Mean {
                mean: 0.0,
                deviation: 0.0
            })
        );
        let ferret = steps.iter().find(|step| step.job == "ferret").unwrap();
        assert_eq!(of_job(&rounds, Way::Across, ferret).unwrap().later_s, None);
    }

    #[test]
    fn a_job_that_begins_early_runs_twice_or_elsewhere_is_seen() {
        let whole = round(Way::Across);
        assert!(waits(&whole).iter().all(|wait| wait.kept));
        assert_eq!(waits(&whole).iter().filter(|wait| wait.across).count(), 2);
        let steps = Way::Across.steps();
        assert!(steps.iter().all(|step| ran_once(&whole, step)));

        let canneal = steps.iter().position(|step| step.job == "canneal").unwrap();
        let mut early = whole.clone();
        early.courses[canneal].began_ms = vec![1_900];
        let broken = waits(&early).into_iter().filter(|wait| !wait.kept);
        assert_eq!(broken.count(), 2);
        let mut twice = whole.clone();
        twice.courses[canneal].began_ms.push(9_999);
        assert!(!ran_once(&twice, &steps[canneal]));
        let mut elsewhere = whole;
        elsewhere.courses[canneal].node = "four".to_owned();
        assert!(!ran_once(&elsewhere, &steps[canneal]));
    }
}
