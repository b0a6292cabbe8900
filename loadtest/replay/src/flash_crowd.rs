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

use crate::excerpt::{Excerpt, Fleet};
use crate::popularity::Popularity;
use crate::rng::SplitMix64;
use crate::table::{BadInput, read_csv};
use crate::units;
use crate::workload::{MAX_RUN_US, Request};

const COLUMNS: [&str; 2] = ["t_ms", "count"];
const MINUTE_US: f64 = 60e6;
/// No single minute of a trace has more; a larger count is a broken file, not work to be made.
const MAX_COUNT: u64 = 10_000_000;

/// Of which minutes, for whom, and what is made up.
#[derive(Debug, Clone, clap::Args, Serialize)]
pub struct Params {
    /// The minutes of the crowd.
    #[command(flatten)]
    #[serde(flatten)]
    pub excerpt: Excerpt,
    /// The hosts that serve the requests.
    #[command(flatten)]
    #[serde(flatten)]
    pub fleet: Fleet,
    /// Mean run times over what the cores offer, in the mean of all minutes.
    #[arg(long, default_value = "0.5", value_parser = units::positive)]
    pub utilisation: f64,
    /// Keep this share of the requests, at random, before run times are scaled.
    #[arg(long, default_value = "1", value_parser = units::share_above_0)]
    pub sample: f64,
    /// Different keys.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub keys: u32,
    /// Exponent of popularity: the k-th key's share is in proportion to k^-S; 0: all alike.
    #[arg(long, value_name = "S", default_value = "1", value_parser = units::not_negative)]
    pub zipf: f64,
    /// Size of each key's data.
    #[arg(long, default_value_t = 100_000_000)]
    pub bytes: u64,
    /// Share of the requests with priority high.
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = units::share)]
    pub high_share: f64,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// The crowd that was made.
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
    let popularity = Popularity::new(params.keys.max(1) as usize, params.zipf, &mut rng);
    let mut drawn = draw(counts, params, &mut rng)?;
    if drawn.is_empty() {
        let window = params.excerpt.window();
        return Err(Error::Empty(window.start, window.end));
    }
    drawn.sort_by(f64::total_cmp);
    let duration_s = params.excerpt.duration_s();
    let offered_us = params.fleet.all_cores() * duration_s * 1e6;
    let mean_run_us = params.utilisation * offered_us / drawn.len() as f64;
    let requests = drawn.into_iter().map(|t_us| {
        let (key, run, class) = (rng.unit(), rng.unit(), rng.unit());
        // Exponential.
        let run_us = -(1.0 - run).ln() * mean_run_us;
        let high = class < params.high_share;
        Request {
            t_us: (t_us / params.excerpt.speed_up) as u64,
            key: popularity.draw(key).to_string(),
            priority: if high { "high" } else { "low" }.to_owned(),
            user: String::new(),
            run_us: (run_us.round() as u64).min(MAX_RUN_US),
            bytes: params.bytes,
            body: None,
            sender: None,
        }
    });
    let requests: Vec<_> = requests.collect();
    let report = report(&requests, params, duration_s, offered_us);
    Ok((requests, report))
}

/// Moments in microseconds from the first minute. Two numbers are drawn for each request, kept or not, so
/// that a sample is a part of the whole.
fn draw(counts: impl BufRead, params: &Params, rng: &mut SplitMix64) -> Result<Vec<f64>, BadInput> {
    let window = params.excerpt.window();
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
                    drawn.push(((minute - params.excerpt.from_minute) as f64 + place) * MINUTE_US);
                }
            }
        }
        Ok(())
    })?;
    Ok(drawn)
}

fn report(requests: &[Request], params: &Params, duration_s: f64, offered_us: f64) -> Report {
    let minutes = usize::try_from(params.excerpt.minutes).unwrap_or(0);
    let (mut counts, mut runs) = (vec![0usize; minutes], vec![0.0; minutes]);
    let mut by_priority = BTreeMap::new();
    for request in requests {
        let minute = (request.t_us as f64 * params.excerpt.speed_up / MINUTE_US) as usize;
        if let (Some(count), Some(run)) = (counts.get_mut(minute), runs.get_mut(minute)) {
            *count += 1;
            *run += request.run_us as f64 / (offered_us / params.excerpt.minutes as f64);
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
        peak: most as f64 * params.excerpt.minutes as f64 / n,
        utilisation_by_minute: runs,
        mean_run_us: run_us as f64 / n,
    }
}
