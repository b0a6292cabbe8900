// SPDX-License-Identifier: Apache-2.0
//! From recorded requests per minute to a workload: the crowd is recorded, all else is made up.
//!
//! One seeded generator makes the moments, keys, run times and priorities, and the [`Report`] says what came
//! of it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::io::BufRead;

use serde::Serialize;

use crate::popularity::Popularity;
use crate::rng::SplitMix64;
use crate::table::{BadInput, read_csv};
use crate::workload::{MAX_RUN_US, Request};

const COLUMNS: [&str; 2] = ["t_ms", "count"];
const MINUTE_US: f64 = 60e6;
/// No single minute of a trace has more; a larger count is a broken file, not work to be made.
const MAX_COUNT: u64 = 10_000_000;

/// What workload to make.
#[derive(Debug, Clone, Serialize)]
pub struct Params {
    /// First minute, counted from the start of the source (t_ms = 0).
    pub from_minute: u64,
    /// Minutes to take.
    pub minutes: u64,
    /// Hosts that will serve it.
    pub hosts: u32,
    /// Cores of each host.
    pub cores: u32,
    /// Run time over what all cores offer, in the mean of all minutes.
    pub utilisation: f64,
    /// Offsets are divided by this.
    pub speed_up: f64,
    /// Share of the requests kept, at random.
    pub sample: f64,
    /// Different keys.
    pub keys: usize,
    /// Exponent of their popularity.
    pub zipf: f64,
    /// Size of each key's data.
    pub bytes: u64,
    /// Share of the requests with priority `high`.
    pub high_share: f64,
    /// Seed of every random choice.
    pub seed: u64,
}

/// What was made.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What was asked for.
    pub params: Params,
    /// Requests in the workload.
    pub requests: usize,
    /// Requests by priority.
    pub by_priority: BTreeMap<String, usize>,
    /// Keys that occur.
    pub keys: usize,
    /// Its duration: minutes / speed-up.
    pub duration_s: f64,
    /// Requests per second.
    pub rate_per_s: f64,
    /// Those of the busiest minute of the source over those of the mean minute.
    pub peak: f64,
    /// Run time over what the cores offer, by minute of the source.
    pub utilisation_by_minute: Vec<f64>,
    /// Mean run time.
    pub mean_run_us: f64,
}

/// Why no workload was made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of the file of counts.
    #[error("counts: {0}")]
    Counts(#[from] BadInput),
    /// The chosen minutes hold nothing.
    #[error("no request in minutes {0} to {1} survives the sampling")]
    Empty(u64, u64),
}

/// Makes the workload. The same input and parameters give the same requests.
pub fn convert(counts: impl BufRead, params: &Params) -> Result<(Vec<Request>, Report), Error> {
    let mut rng = SplitMix64::new(params.seed);
    let popularity = Popularity::new(params.keys.max(1), params.zipf, &mut rng);
    let mut drawn = draw(counts, params, &mut rng)?;
    if drawn.is_empty() {
        let end = params.from_minute + params.minutes;
        return Err(Error::Empty(params.from_minute, end));
    }
    drawn.sort_by(f64::total_cmp);
    let duration_s = params.minutes as f64 * 60.0 / params.speed_up;
    let offered_us = f64::from(params.hosts) * f64::from(params.cores) * duration_s * 1e6;
    let mean_run_us = params.utilisation * offered_us / drawn.len() as f64;
    let requests = drawn.into_iter().map(|t_us| {
        let (key, run, class) = (rng.unit(), rng.unit(), rng.unit());
        // Exponential.
        let run_us = -(1.0 - run).ln() * mean_run_us;
        let high = class < params.high_share;
        Request {
            t_us: (t_us / params.speed_up) as u64,
            key: popularity.draw(key).to_string(),
            priority: if high { "high" } else { "low" }.to_owned(),
            user: String::new(),
            run_us: (run_us.round() as u64).min(MAX_RUN_US),
            bytes: params.bytes,
            body: None,
        }
    });
    let requests: Vec<_> = requests.collect();
    let report = report(&requests, params, duration_s, offered_us);
    Ok((requests, report))
}

/// Moments in microseconds from the first minute. Two numbers are drawn for each request, kept or not, so
/// that a sample is a part of the whole.
fn draw(counts: impl BufRead, params: &Params, rng: &mut SplitMix64) -> Result<Vec<f64>, BadInput> {
    let window = params.from_minute..params.from_minute + params.minutes;
    let mut drawn = Vec::new();
    let mut next = 0;
    read_csv(counts, &COLUMNS, |row| {
        let (t_ms, count) = (row.whole("t_ms")?, row.whole("count")?);
        if t_ms % 60_000 != 0 {
            return Err(row.bad("t_ms", "is not the beginning of a minute"));
        }
        if t_ms < next {
            return Err(row.bad("t_ms", format!("{t_ms} is not after the line above")));
        }
        next = t_ms + 1;
        if count > MAX_COUNT {
            return Err(row.bad("count", format!("is more than {MAX_COUNT}")));
        }
        let minute = t_ms / 60_000;
        if window.contains(&minute) {
            for _ in 0..count {
                let (place, keep) = (rng.unit(), rng.unit());
                if keep < params.sample {
                    drawn.push(((minute - params.from_minute) as f64 + place) * MINUTE_US);
                }
            }
        }
        Ok(())
    })?;
    Ok(drawn)
}

fn report(requests: &[Request], params: &Params, duration_s: f64, offered_us: f64) -> Report {
    let minutes = usize::try_from(params.minutes).unwrap_or(0);
    let (mut counts, mut runs) = (vec![0usize; minutes], vec![0.0; minutes]);
    let mut by_priority = BTreeMap::new();
    for request in requests {
        let minute = (request.t_us as f64 * params.speed_up / MINUTE_US) as usize;
        if let (Some(count), Some(run)) = (counts.get_mut(minute), runs.get_mut(minute)) {
            *count += 1;
            *run += request.run_us as f64 / (offered_us / params.minutes as f64);
        }
        *by_priority.entry(request.priority.clone()).or_default() += 1;
    }
    let n = requests.len() as f64;
    let run_us: u64 = requests.iter().map(|request| request.run_us).sum();
    let keys: HashSet<&str> = requests.iter().map(|r| r.key.as_str()).collect();
    let most = counts.into_iter().max().unwrap_or(0);
    Report {
        params: params.clone(),
        requests: requests.len(),
        by_priority,
        keys: keys.len(),
        duration_s,
        rate_per_s: n / duration_s,
        peak: most as f64 * params.minutes as f64 / n,
        utilisation_by_minute: runs,
        mean_run_us: run_us as f64 / n,
    }
}
