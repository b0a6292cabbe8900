// SPDX-License-Identifier: Apache-2.0
//! From a recorded web log (NASA-HTTP) to a workload.
//!
//! The source has no run times and no priorities, and its clock counts whole seconds. These are modelled,
//! with one seeded generator, and the [`Report`] says how.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead;
use std::time::Duration;

use serde::Serialize;

use crate::excerpt::{Excerpt, Fleet};
use crate::log::{self, Timed};
use crate::rng::SplitMix64;
use crate::table::{BadInput, Row};
use crate::units;
use crate::workload::{MAX_RUN_US, Request};

/// The source's clock stands still for so long.
const CLOCK: Duration = Duration::from_secs(1);

/// Of which part of the log, and for whom.
#[derive(Debug, Clone, clap::Args, Serialize)]
pub struct Params {
    /// The part of the log.
    #[command(flatten)]
    #[serde(flatten)]
    pub excerpt: Excerpt,
    /// The hosts that serve the hits.
    #[command(flatten)]
    #[serde(flatten)]
    pub fleet: Fleet,
    /// Sum of run times over what the cores offer.
    #[arg(long, default_value = "0.85", value_parser = units::positive)]
    pub utilisation: f64,
    /// Multiply sizes by this: pages of 1995 are small.
    #[arg(long, value_name = "F", default_value = "1", value_parser = units::positive)]
    pub size_factor: f64,
    /// Share of the clients with priority high.
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = units::share)]
    pub high_share: f64,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// The hits that were made.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What was asked for.
    pub params: Params,
    /// Requests in the workload.
    pub requests: usize,
    /// Requests by priority.
    pub by_priority: BTreeMap<String, usize>,
    /// Pages that occur.
    pub keys: usize,
    /// Clients that occur.
    pub users: usize,
    /// Share of the most frequent page.
    pub largest_key_share: f64,
    /// Its duration: minutes / speed-up.
    pub duration_s: f64,
    /// Requests per second.
    pub rate_per_s: f64,
    /// Mean run time.
    pub mean_run_us: f64,
    /// Utilisation reached by run times alone; fetches of data come on top.
    pub utilisation: f64,
    /// Data of every page that occurs, together.
    pub distinct_bytes: u64,
}

/// Why no workload was made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of the trace.
    #[error("trace: {0}")]
    Trace(#[from] BadInput),
    /// The chosen minutes hold nothing.
    #[error("no request in minutes {0} to {1}")]
    Empty(u64, u64),
    /// Run times are too long to be written down.
    #[error(
        "at utilisation {0} the longest run would last {1} s, more than an hour: fewer cores, or more speed-up"
    )]
    TooLong(f64, u64),
}

/// One line of the log.
#[derive(Debug)]
struct Hit {
    t_ms: u64,
    page: u64,
    bytes: u64,
    client: u64,
}

/// Makes the workload. The same input and parameters give the same requests.
pub fn convert(trace: impl BufRead, params: &Params) -> Result<(Vec<Request>, Report), Error> {
    let window = params.excerpt.window();
    let hits: Vec<Hit> = log::read(trace, window.clone())?;
    if hits.is_empty() {
        return Err(Error::Empty(window.start, window.end));
    }
    let mut rng = SplitMix64::new(params.seed);
    let duration_s = params.excerpt.duration_s();
    let cores = params.fleet.all_cores();
    let mean_run_us = params.utilisation * cores * duration_s * 1e6 / hits.len() as f64;
    // Answers 304 carry nothing: a page is as large as the largest answer with it.
    let mut sizes: HashMap<u64, u64> = HashMap::new();
    for hit in &hits {
        let size = sizes.entry(hit.page).or_default();
        *size = hit.bytes.max(*size);
    }
    let mean_bytes = hits.iter().map(|hit| hit.bytes as f64).sum::<f64>() / hits.len() as f64;
    let clients: BTreeSet<u64> = hits.iter().map(|hit| hit.client).collect();
    let high = clients
        .into_iter()
        .filter(|_| rng.unit() < params.high_share);
    let high: BTreeSet<u64> = high.collect();
    let moments = log::moments_us(&hits, CLOCK, &mut rng);
    let requests = hits.iter().zip(moments).map(|(hit, at_us)| {
        let size = sizes.get(&hit.page).copied().unwrap_or(0);
        let t_us =
            (at_us - params.excerpt.from_minute * 60_000_000) as f64 / params.excerpt.speed_up;
        let relative = match mean_bytes > 0.0 {
            true => (1.0 + hit.bytes as f64 / mean_bytes) / 2.0,
            false => 1.0,
        };
        Request {
            t_us: t_us as u64,
            key: hit.page.to_string(),
            priority: if high.contains(&hit.client) {
                "high"
            } else {
                "low"
            }
            .to_owned(),
            user: hit.client.to_string(),
            run_us: (relative * mean_run_us).round() as u64,
            bytes: (size as f64 * params.size_factor).round() as u64,
            body: None,
            sender: None,
        }
    });
    let requests: Vec<_> = requests.collect();
    let longest = requests
        .iter()
        .map(|request| request.run_us)
        .max()
        .unwrap_or(0);
    if longest > MAX_RUN_US {
        return Err(Error::TooLong(params.utilisation, longest / 1_000_000));
    }
    let report = report(&requests, params, duration_s, cores);
    Ok((requests, report))
}

impl Timed for Hit {
    const COLUMNS: &'static [&'static str] = &["t_ms", "keys", "cost", "size", "cls", "client"];

    fn parse(cells: &Row<'_>) -> Result<Self, BadInput> {
        match cells.whole("cls")? {
            100..=599 => {}
            status => return Err(cells.bad("cls", format!("{status} is no status of HTTP"))),
        }
        Ok(Self {
            t_ms: cells.whole("t_ms")?,
            page: cells.whole("keys")?,
            bytes: cells.whole("size")?,
            client: cells.whole("client")?,
        })
    }

    fn t_ms(&self) -> u64 {
        self.t_ms
    }
}

fn report(requests: &[Request], params: &Params, duration_s: f64, cores: f64) -> Report {
    let mut by_priority = BTreeMap::new();
    let mut by_key: HashMap<&str, (usize, u64)> = HashMap::new();
    for request in requests {
        *by_priority.entry(request.priority.clone()).or_default() += 1;
        by_key.entry(&request.key).or_insert((0, request.bytes)).0 += 1;
    }
    let run_us: u64 = requests.iter().map(|request| request.run_us).sum();
    let users: BTreeSet<&str> = requests.iter().map(|r| r.user.as_str()).collect();
    let most = by_key.values().map(|(n, _)| *n).max().unwrap_or(0);
    let n = requests.len() as f64;
    Report {
        params: params.clone(),
        requests: requests.len(),
        by_priority,
        keys: by_key.len(),
        users: users.len(),
        largest_key_share: most as f64 / n,
        duration_s,
        rate_per_s: n / duration_s,
        mean_run_us: run_us as f64 / n,
        utilisation: run_us as f64 / 1e6 / (duration_s * cores),
        distinct_bytes: by_key.values().map(|(_, bytes)| bytes).sum(),
    }
}
