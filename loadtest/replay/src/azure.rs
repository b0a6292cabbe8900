// SPDX-License-Identifier: Apache-2.0
//! From per-minute invocation counts of Azure Functions to a workload.
//!
//! The source has no times inside the minute, no run time of a single invocation and no priority.
//! These are modelled, with one seeded generator, and the [`Report`] says how.

mod function;

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;
use std::time::Duration;

use serde::Serialize;

use crate::excerpt::{Excerpt, Fleet};
use crate::rng::SplitMix64;
use crate::table::{BadInput, Row, read_csv};
use crate::units::{self, micros};
use crate::workload::Request;

use function::Function;

const COUNT_COLUMNS: [&str; 4] = ["t_ms", "keys", "count", "cls"];
const MINUTE_US: f64 = 60e6;
/// No single minute of a trace has more; a larger count is a broken file, not work to be made.
const MAX_COUNT: u64 = 10_000_000;

/// Of which invocations, and for whom.
#[derive(Debug, Clone, clap::Args, Serialize)]
pub struct Params {
    /// The minutes of the trace.
    #[command(flatten)]
    #[serde(flatten)]
    pub excerpt: Excerpt,
    /// The hosts that serve the invocations.
    #[command(flatten)]
    #[serde(flatten)]
    pub fleet: Fleet,
    /// Keep this share of the invocations, at random, before run times are scaled.
    #[arg(long, default_value = "1", value_parser = units::share_above_0)]
    pub sample: f64,
    /// Sum of run times over what the cores offer.
    #[arg(long, default_value = "0.85", value_parser = units::positive)]
    pub utilisation: f64,
    /// Cut longer run times (default: a tenth of the workload's duration).
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub max_run: Option<Duration>,
    /// Trigger classes with high priority, separated by commas.
    #[arg(
        long,
        value_name = "CLASS",
        value_delimiter = ',',
        default_value = "http"
    )]
    pub high: Vec<String>,
    /// Name no user. The source knows applications only, and one of them makes most of the calls:
    /// taken as a user, it is admitted or refused as a whole.
    #[arg(long = "anonymous", action = clap::ArgAction::SetFalse)]
    pub users: bool,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// What was made, and how far it is from the source.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What was asked for.
    pub params: Params,
    /// Requests in the workload.
    pub requests: usize,
    /// Requests by priority.
    pub by_priority: BTreeMap<String, usize>,
    /// Functions that occur.
    pub keys: usize,
    /// Share of the most frequent function.
    pub largest_key_share: f64,
    /// Its duration: minutes / speed-up.
    pub duration_s: f64,
    /// Requests per second.
    pub rate_per_s: f64,
    /// What run times were multiplied by after the speed-up, to reach the utilisation.
    pub run_factor: f64,
    /// Sum of all run times.
    pub run_core_s: f64,
    /// Utilisation reached by run times alone; fetches of data come on top.
    pub utilisation: f64,
    /// The same by minute of the source: a mean below 1 may hide a minute above it.
    pub utilisation_by_minute: Vec<f64>,
    /// Cap of a run time.
    pub max_run_us: u64,
    /// Requests whose run time was cut to the cap.
    pub capped: usize,
    /// Mean run time.
    pub mean_run_us: f64,
    /// Data of every function that occurs, together.
    pub distinct_bytes: u64,
    /// Data of the largest function that occurs.
    pub largest_bytes: u64,
}

/// Why no workload was made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of the file of counts.
    #[error("counts: {0}")]
    Counts(BadInput),
    /// A line of the file of functions.
    #[error("keys: {0}")]
    Keys(BadInput),
    /// The chosen minutes hold nothing.
    #[error("no invocation in minutes {0} to {1} survives the sampling")]
    Empty(u64, u64),
    /// The cap is too low for the utilisation.
    #[error("with runs of at most {0:?} the utilisation cannot exceed {1:.3}")]
    Unreachable(Duration, f64),
}

struct Invocation {
    t_us: f64,
    key: String,
    class: String,
    run_us: f64,
}

/// Makes the workload. The same input and parameters give the same requests.
pub fn convert(
    counts: impl BufRead,
    keys: impl BufRead,
    params: &Params,
) -> Result<(Vec<Request>, Report), Error> {
    let functions = function::read(keys).map_err(Error::Keys)?;
    let mut drawn = draw(counts, &functions, params).map_err(Error::Counts)?;
    if drawn.is_empty() {
        let window = params.excerpt.window();
        return Err(Error::Empty(window.start, window.end));
    }
    // Stable: equal times keep the order of the source.
    drawn.sort_by(|a, b| a.t_us.total_cmp(&b.t_us));
    let duration = Duration::from_secs_f64(params.excerpt.duration_s());
    let max_run = params.max_run.unwrap_or(duration / 10);
    let factor = scale(&drawn, duration, max_run, params)?;
    let requests = drawn
        .iter()
        .map(|invocation| request(invocation, &functions, params, factor, max_run));
    let requests: Vec<_> = requests.collect();
    let report = report(&requests, params, duration, factor, max_run);
    Ok((requests, report))
}

/// Places every invocation in its minute and draws its run time. Three numbers are drawn for each,
/// kept or not, so that a sample is a part of the whole and not another workload.
fn draw(
    counts: impl BufRead,
    functions: &HashMap<String, Function>,
    params: &Params,
) -> Result<Vec<Invocation>, BadInput> {
    let mut rng = SplitMix64::new(params.seed);
    let mut drawn = Vec::new();
    let window = params.excerpt.window();
    let mut last = 0;
    read_csv(counts, &COUNT_COLUMNS, |row| {
        let (minute, count) = (minute(row)?, row.whole("count")?);
        let key = row.text("keys");
        let Some(function) = functions.get(key) else {
            return Err(row.bad("keys", format!("{key:?} is not in the file of keys")));
        };
        if minute < last {
            let reason = format!("minute {minute} is before {last} of the line above");
            return Err(row.bad("t_ms", reason));
        }
        last = minute;
        let class = row.text("cls");
        if class != function.trigger {
            let trigger = &function.trigger;
            let reason =
                format!("{class:?} is not the trigger of {key:?} in the file of keys, {trigger:?}");
            return Err(row.bad("cls", reason));
        }
        if count > MAX_COUNT {
            return Err(row.bad("count", format!("is more than {MAX_COUNT}")));
        }
        if !window.contains(&minute) {
            return Ok(());
        }
        for _ in 0..count {
            let (place, run, keep) = (rng.unit(), rng.unit(), rng.unit());
            if keep < params.sample {
                drawn.push(Invocation {
                    t_us: ((minute - params.excerpt.from_minute) as f64 + place) * MINUTE_US,
                    key: key.to_owned(),
                    class: class.to_owned(),
                    run_us: function.run_ms(run) * 1e3 / params.excerpt.speed_up,
                });
            }
        }
        Ok(())
    })?;
    Ok(drawn)
}

fn minute(row: &Row<'_>) -> Result<u64, BadInput> {
    let t_ms = row.whole("t_ms")?;
    if t_ms % 60_000 != 0 {
        return Err(row.bad("t_ms", "is not the beginning of a minute"));
    }
    Ok(t_ms / 60_000)
}

/// The factor with which the capped run times add up to the utilisation, by bisection: the sum
/// grows with the factor.
fn scale(
    drawn: &[Invocation],
    duration: Duration,
    max_run: Duration,
    params: &Params,
) -> Result<f64, Error> {
    let offered = params.fleet.all_cores() * duration.as_secs_f64() * 1e6;
    let wanted = params.utilisation * offered;
    let cap = micros(max_run) as f64;
    let sum = |factor: f64| {
        drawn
            .iter()
            .map(|i| (i.run_us * factor).min(cap))
            .sum::<f64>()
    };
    let most = drawn.iter().filter(|i| i.run_us > 0.0).count() as f64 * cap;
    if most < wanted {
        return Err(Error::Unreachable(max_run, most / offered));
    }
    let (mut low, mut high) = (0.0, 1.0);
    while sum(high) < wanted && high < 1e18 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if sum(middle) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(high)
}

fn request(
    invocation: &Invocation,
    functions: &HashMap<String, Function>,
    params: &Params,
    factor: f64,
    max_run: Duration,
) -> Request {
    let function = functions.get(&invocation.key);
    let high = params.high.contains(&invocation.class);
    Request {
        t_us: (invocation.t_us / params.excerpt.speed_up) as u64,
        key: invocation.key.clone(),
        priority: if high { "high" } else { "low" }.to_owned(),
        user: function
            .filter(|_| params.users)
            .map(|f| f.app.clone())
            .unwrap_or_default(),
        run_us: ((invocation.run_us * factor).round() as u64).min(micros(max_run)),
        bytes: function.map_or(0, |f| f.bytes),
        body: None,
        sender: None,
    }
}

fn report(
    requests: &[Request],
    params: &Params,
    duration: Duration,
    run_factor: f64,
    max_run: Duration,
) -> Report {
    let max_run_us = micros(max_run);
    let mut by_priority = BTreeMap::new();
    let mut by_key: HashMap<&str, (usize, u64)> = HashMap::new();
    for request in requests {
        *by_priority.entry(request.priority.clone()).or_default() += 1;
        by_key.entry(&request.key).or_insert((0, request.bytes)).0 += 1;
    }
    let run_us: u64 = requests.iter().map(|r| r.run_us).sum();
    let largest = by_key.values().map(|(n, _)| *n).max().unwrap_or(0);
    let offered_s = params.fleet.all_cores() * duration.as_secs_f64();
    let n = requests.len() as f64;
    Report {
        params: params.clone(),
        requests: requests.len(),
        by_priority,
        keys: by_key.len(),
        largest_key_share: largest as f64 / n,
        duration_s: duration.as_secs_f64(),
        rate_per_s: n / duration.as_secs_f64(),
        run_factor,
        run_core_s: run_us as f64 / 1e6,
        utilisation: run_us as f64 / 1e6 / offered_s,
        utilisation_by_minute: by_minute(requests, params, offered_s),
        max_run_us,
        capped: requests.iter().filter(|r| r.run_us == max_run_us).count(),
        mean_run_us: run_us as f64 / n,
        distinct_bytes: by_key.values().map(|(_, bytes)| bytes).sum(),
        largest_bytes: by_key.values().map(|(_, b)| *b).max().unwrap_or(0),
    }
}

/// Run time of the requests that come in each minute of the source, over what the cores offer then.
fn by_minute(requests: &[Request], params: &Params, offered_s: f64) -> Vec<f64> {
    let mut sums = vec![0.0; usize::try_from(params.excerpt.minutes).unwrap_or(0)];
    let offered_us = offered_s * 1e6 / params.excerpt.minutes as f64;
    for request in requests {
        let minute = request.t_us as f64 * params.excerpt.speed_up / MINUTE_US;
        if let Some(sum) = sums.get_mut(minute as usize) {
            *sum += request.run_us as f64 / offered_us;
        }
    }
    sums
}

#[cfg(test)]
mod tests;
