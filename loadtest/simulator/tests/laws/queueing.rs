// SPDX-License-Identifier: Apache-2.0
//! One host against queueing theory.

use std::time::Duration;

use weir_sim::Scenario;
use weir_sim::workload::{HIGH, Job};

use crate::{SECOND, jobs, play, scenario};

const JOBS: usize = 100_000;
const RUN: Duration = Duration::from_millis(100);

/// The probability to wait with `servers` servers of which `busy` are busy on average (Erlang C).
pub(crate) fn erlang_c(servers: u32, busy: f64) -> f64 {
    let blocking = (1..=servers).fold(1.0, |b, n| busy * b / (f64::from(n) + busy * b));
    let rho = busy / f64::from(servers);
    blocking / (1.0 - rho * (1.0 - blocking))
}

fn host(cores: u32) -> Scenario {
    let mut scenario = scenario();
    scenario.hosts = 1;
    scenario.callers = 1;
    scenario.host.cores = cores as usize;
    scenario.timeouts.deadline = 3600 * SECOND;
    scenario
}

fn poisson(busy: f64) -> Vec<Job> {
    let mut jobs = jobs(JOBS, 0, RUN.div_f64(busy), RUN, 11);
    jobs.iter_mut().for_each(|job| job.then = None);
    jobs
}

fn mean(waits: impl Iterator<Item = Duration>) -> f64 {
    let (mut n, mut sum) = (0.0, 0.0);
    for wait in waits {
        n += 1.0;
        sum += wait.as_secs_f64();
    }
    sum / n
}

/// Waits that follow each other are alike: the mean of so many has a standard error of up to 3 %.
fn assert_near(got: f64, expected: f64) {
    let error = (got / expected - 1.0).abs();
    assert!(error < 0.06, "{got} instead of {expected}");
}

#[test]
fn the_mean_wait_is_that_of_erlang_c() {
    for (cores, rho) in [(1, 0.5), (4, 0.7), (8, 0.7)] {
        let busy = rho * f64::from(cores);
        let mut jobs = poisson(busy);
        jobs.iter_mut().for_each(|job| job.class = HIGH);
        let all = play(&host(cores), &[], jobs);
        let waits = all.iter().map(|ended| ended.spent.as_ref().unwrap().wait);
        let expected = erlang_c(cores, busy) * RUN.as_secs_f64() / (f64::from(cores) - busy);
        assert_near(mean(waits), expected);
    }
}

/// Cobham's formula: the class that goes first waits as long as if the other were not there, but
/// for the joblet that nobody interrupts.
#[test]
fn the_mean_waits_of_two_priorities_are_those_of_cobham() {
    let (cores, rho) = (4, 0.75);
    let busy = rho * f64::from(cores);
    let all = play(&host(cores), &[], poisson(busy));
    let wait_of = |high: bool| {
        let of = all
            .iter()
            .filter(move |ended| (ended.class == HIGH) == high);
        mean(of.map(|ended| ended.spent.as_ref().unwrap().wait))
    };
    let high_rho = rho / 3.0;
    let residual = erlang_c(cores, busy) * RUN.as_secs_f64() / f64::from(cores);
    assert_near(wait_of(true), residual / (1.0 - high_rho));
    assert_near(wait_of(false), residual / ((1.0 - high_rho) * (1.0 - rho)));
}
