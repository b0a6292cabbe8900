// SPDX-License-Identifier: Apache-2.0
//! From the requests of a language model that Mooncake recorded to a workload with prompts.
//!
//! ```text
//! extract ── trace ──> rows of the window ── sessions ──> keys, sample ──> requests, Report
//!                            └── prompt ──> bodies
//! ```
//! The source tells which blocks of 512 tokens prompts begin with, not their text, and when requests
//! came to three seconds. The text and the moment are made up; the [`Report`] says what was made.

mod prompt;
mod sessions;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::HashSet;
use std::io::BufRead;
use std::time::Duration;

use serde::Serialize;

use crate::excerpt::Excerpt;
use crate::log;
use crate::rng::SplitMix64;
use crate::table::BadInput;
use crate::units::{self, micros};
use crate::workload::Request;

pub use prompt::{BLOCK_TOKENS, BYTES_PER_TOKEN, body};
pub use trace::Row;

/// What workload to make.
#[derive(Debug, Clone, clap::Args, Serialize)]
pub struct Params {
    /// Which part of the source.
    #[command(flatten)]
    #[serde(flatten)]
    pub excerpt: Excerpt,
    /// The source's clock stands still for so long: its requests are spread over that.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = units::duration)]
    pub clock: Duration,
    /// Keep this share of the sessions, at random and each as a whole.
    #[arg(long, default_value = "1", value_parser = units::share_above_0)]
    pub sample: f64,
    /// Make the key a list instead: all full blocks of the prompt in prefix order, separated by ";", but
    /// for those at its beginning that are in more than half of the requests. The separator is the
    /// filter's key_separator and that of weir-llm-host.
    #[arg(long)]
    pub prefix_keys: bool,
    /// Give each request a run time of so long for each token of its answer (default: 0, hosts know).
    #[arg(long, value_name = "DURATION", value_parser = units::duration_above_0)]
    pub decode_per_token: Option<Duration>,
    /// Give this share of the sessions, drawn, the priority high; the others are low.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = units::share)]
    pub high_share: f64,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// The requests that were made, and the share of them that caches could serve.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What was asked for.
    pub params: Params,
    /// Requests in the workload.
    pub requests: usize,
    /// Its duration: minutes / speed-up.
    pub duration_s: f64,
    /// Requests per second.
    pub rate_per_s: f64,
    /// Sessions, the keys.
    pub keys: usize,
    /// Share of requests whose session had come before.
    pub returning_share: f64,
    /// Blocks at the beginning of most requests, which are no session's own.
    pub common_blocks: usize,
    /// Tokens of all prompts.
    pub prompt_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
    /// Full blocks of all prompts; only these can be cached.
    pub blocks: usize,
    /// Different ones.
    pub distinct_blocks: usize,
    /// Share of the prompts' tokens that a single host with an endless cache would find: no way of
    /// placing can find more.
    pub findable_share: f64,
}

/// A request, and what its body is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The line of the workload; it names the body.
    pub request: Request,
    /// See [`body`].
    pub row: Row,
    /// Its first own block.
    pub session: u64,
}

/// Why no workload was made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of the trace.
    #[error("trace: {0}")]
    Trace(#[from] BadInput),
    /// The chosen minutes hold nothing.
    #[error("no request in minutes {0} to {1} survives the sampling")]
    Empty(u64, u64),
}

/// Makes the workload. The same input and parameters give the same requests.
pub fn convert(trace: impl BufRead, params: &Params) -> Result<(Vec<Made>, Report), Error> {
    let window = params.excerpt.window();
    let mut rows: Vec<Row> = log::read(trace, window)?;
    number_unknown(&mut rows);
    let mut rng = SplitMix64::new(params.seed);
    let moments = log::moments_us(&rows, params.clock, &mut rng);
    let sessions = sessions::name(&rows);
    let kept = sessions::sample(&sessions.keys, params.sample, &mut rng);
    // Drawn last, so that nothing else depends on it.
    let high = sessions::sample(&sessions.keys, params.high_share, &mut rng);
    let start_us = params.excerpt.from_minute * 60_000_000;
    let mut made = Vec::new();
    for ((row, at_us), key) in rows.into_iter().zip(moments).zip(&sessions.keys) {
        if kept.contains(key) {
            let t_us = (at_us - start_us) as f64 / params.excerpt.speed_up;
            let name = match params.prefix_keys {
                true => sessions::list(&row, &sessions.common),
                false => key.to_string(),
            };
            let session = *key;
            let mut request = request(t_us as u64, name, session, &row, made.len(), params);
            if high.contains(key) {
                request.priority = "high".to_owned();
            }
            made.push(Made {
                request,
                row,
                session,
            });
        }
    }
    if made.is_empty() {
        let window = params.excerpt.window();
        return Err(Error::Empty(window.start, window.end));
    }
    let report = report(&made, params, sessions.common.len());
    Ok((made, report))
}

/// Prompts of which the source does not tell the blocks have nothing in common with any other.
fn number_unknown(rows: &mut [Row]) {
    let known = rows.iter().flat_map(|row| &row.blocks).max();
    let mut next = known.map_or(0, |most| most + 1);
    for row in rows.iter_mut().filter(|row| row.blocks.is_empty()) {
        let end = next + row.needed_blocks();
        row.blocks = (next..end).collect();
        next = end;
    }
}

/// The source knows neither priorities nor users.
fn request(
    t_us: u64,
    key: String,
    session: u64,
    row: &Row,
    number: usize,
    params: &Params,
) -> Request {
    let per_token = params.decode_per_token.unwrap_or_default();
    let tokens = u32::try_from(row.output_tokens).unwrap_or(u32::MAX);
    Request {
        t_us,
        key,
        priority: "low".to_owned(),
        user: String::new(),
        run_us: micros(per_token.saturating_mul(tokens)),
        bytes: row.prompt_tokens * BYTES_PER_TOKEN as u64,
        body: Some(format!("{number:06}.json")),
        sender: Some(session.to_string()),
    }
}

fn report(made: &[Made], params: &Params, common_blocks: usize) -> Report {
    let (mut keys, mut seen) = (HashSet::new(), HashSet::<u64>::new());
    let (mut returning, mut blocks, mut found) = (0, 0, 0);
    for Made { row, session, .. } in made {
        returning += usize::from(!keys.insert(session));
        let full = row.full_blocks();
        blocks += full.len();
        found += full.iter().take_while(|id| seen.contains(*id)).count();
        seen.extend(full);
    }
    let duration_s = params.excerpt.duration_s();
    let prompt_tokens: u64 = made.iter().map(|m| m.row.prompt_tokens).sum();
    Report {
        params: params.clone(),
        requests: made.len(),
        duration_s,
        rate_per_s: made.len() as f64 / duration_s,
        keys: keys.len(),
        returning_share: returning as f64 / made.len() as f64,
        common_blocks,
        prompt_tokens,
        output_tokens: made.iter().map(|m| m.row.output_tokens).sum(),
        blocks,
        distinct_blocks: seen.len(),
        findable_share: (found * BLOCK_TOKENS) as f64 / prompt_tokens as f64,
    }
}
