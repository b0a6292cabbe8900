// SPDX-License-Identifier: Apache-2.0
//! From the index of a folder of feeds to a workload of real requests on them.
//!
//! ```text
//! feeds.json ── index ──> projects ── popularity ──> whose job ──┐
//!                         rate ─────── arrivals ───> when ───────┴──> requests with bodies, Report
//! ```
//!
//! The feeds and their rules are real, the jobs are not recorded anywhere: when they come, for whom
//! and how important they are is drawn from one seeded generator.

mod index;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use crate::popularity::Popularity;
use crate::rng::SplitMix64;
use crate::workload::Request;

pub use crate::arrivals::Rate;
pub use index::{BadIndex, INDEX, Index, Project, RULES};

use crate::arrivals::Arrivals;

/// More do not fit into memory everywhere, and are rather a slip in a flag than a load test.
const MAX_EXPECTED: f64 = 10_000_000.0;

/// What workload to make.
#[derive(Debug, Clone, Serialize)]
pub struct Params {
    /// How many jobs a second.
    pub rate: Rate,
    /// How long they come.
    pub duration: Duration,
    /// Exponent of popularity: the k-th most popular project has a share in proportion to k^-s of
    /// the jobs. 0: all alike.
    pub zipf: f64,
    /// Share of the jobs with priority `high`, the others are `low`.
    pub high_share: f64,
    /// Whether the project stands for the user; else nobody does.
    pub users: bool,
    /// Seed of every random choice.
    pub seed: u64,
}

/// The jobs that were made.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// As they were asked for.
    pub params: Params,
    /// Requests in the workload.
    pub requests: usize,
    /// Requests by priority.
    pub by_priority: BTreeMap<&'static str, usize>,
    /// Projects with a request, the keys.
    pub keys: usize,
    /// Projects in the index.
    pub projects: usize,
    /// Different bodies sent.
    pub bodies: usize,
    /// Share of the most frequent project.
    pub largest_key_share: f64,
    /// As asked for.
    pub duration_s: f64,
    /// Requests per second, the mean over the duration.
    pub rate_per_s: f64,
    /// Data of every project with a request, together.
    pub distinct_bytes: u64,
    /// Data of the largest of them.
    pub largest_bytes: u64,
    /// Data of the mean request's project.
    pub mean_bytes: f64,
}

/// Why no workload was made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing would ever come.
    #[error("a rate of 0 brings no job: give a --rate or a --ramp-to above 0")]
    NoRate,
    /// Chance or a short duration.
    #[error(
        "no job came in {0:?} at this rate: give a longer duration, a higher rate or another seed"
    )]
    Empty(Duration),
    /// Too many requests.
    #[error(
        "about {0:.0} jobs would come, and {MAX_EXPECTED:.0} are the most that a workload may expect"
    )]
    TooMany(f64),
}

/// Makes the workload. The same index and parameters give the same requests, and another rate or
/// duration the same jobs at other times.
pub fn generate(index: &Index, params: &Params) -> Result<(Vec<Request>, Report), Error> {
    let expected = params.rate.expected(params.duration);
    if expected <= 0.0 {
        return Err(Error::NoRate);
    }
    if expected > MAX_EXPECTED {
        return Err(Error::TooMany(expected));
    }
    let mut rng = SplitMix64::new(params.seed);
    let popularity = Popularity::new(index.projects.len(), params.zipf, &mut rng);
    let mut arrivals = Arrivals::new(&params.rate, params.duration);
    let mut requests = Vec::new();
    while let Some(at) = arrivals.next(rng.unit()) {
        let project = &index.projects[popularity.draw(rng.unit())];
        requests.push(request(at, project, params, rng.unit(), rng.unit()));
    }
    if requests.is_empty() {
        return Err(Error::Empty(params.duration));
    }
    let report = report(&requests, index, params);
    Ok((requests, report))
}

/// `channel` and `priority` are uniform in 0..1.
fn request(
    at: Duration,
    project: &Project,
    params: &Params,
    channel: f64,
    priority: f64,
) -> Request {
    let name = &project.project;
    let rules = &project.rules[(channel * project.rules.len() as f64) as usize];
    let high = priority < params.high_share;
    Request {
        t_us: crate::units::micros(at),
        key: name.clone(),
        priority: if high { "high" } else { "low" }.to_owned(),
        user: if params.users { name } else { "" }.to_owned(),
        run_us: 0,
        bytes: project.bytes,
        body: Some(format!("{RULES}/{rules}")),
        sender: None,
    }
}

fn report(requests: &[Request], index: &Index, params: &Params) -> Report {
    let mut by_priority = BTreeMap::from([("high", 0), ("low", 0)]);
    let mut by_key: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for request in requests {
        let priority = if request.priority == "high" {
            "high"
        } else {
            "low"
        };
        *by_priority.entry(priority).or_default() += 1;
        by_key.entry(&request.key).or_insert((0, request.bytes)).0 += 1;
    }
    let n = requests.len() as f64;
    let largest = by_key.values().map(|(n, _)| *n).max().unwrap_or(0);
    let bodies: BTreeSet<_> = requests.iter().map(|r| &r.body).collect();
    Report {
        params: params.clone(),
        requests: requests.len(),
        by_priority,
        keys: by_key.len(),
        projects: index.projects.len(),
        bodies: bodies.len(),
        largest_key_share: largest as f64 / n,
        duration_s: params.duration.as_secs_f64(),
        rate_per_s: n / params.duration.as_secs_f64(),
        distinct_bytes: by_key.values().map(|(_, bytes)| bytes).sum(),
        largest_bytes: by_key.values().map(|(_, b)| *b).max().unwrap_or(0),
        mean_bytes: requests.iter().map(|r| r.bytes as f64).sum::<f64>() / n,
    }
}

#[cfg(test)]
mod tests;
