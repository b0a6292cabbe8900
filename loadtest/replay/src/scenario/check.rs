// SPDX-License-Identifier: Apache-2.0
//! From what is written to what is good.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use http::HeaderValue;

use super::made::{Distribution, Keys, Made, Pace, Stage};
use super::plan::{Bound, Figure, Threshold};
use super::trace::{self, Trace};
use super::{Load, Scenario, written};

/// A field and why it is refused.
pub(super) type Refused = (String, String);

/// Longer is not a load test on somebody's machine.
const LONGEST_S: f64 = 86_400.0;
/// More is rather a slip of a digit.
const MOST_PER_S: f64 = 100_000.0;
const MOST_OF_CAPACITY: f64 = 100.0;
const MOST_KEYS: u32 = 10_000_000;
/// As the host takes.
const LONGEST_RUN_MS: f64 = 3_600_000.0;
const MOST_BYTES: f64 = 1e12;
/// Rounding in the file.
const ABOUT_1: f64 = 1e-6;

fn refused<T>(field: impl Into<String>, reason: impl Into<String>) -> Result<T, Refused> {
    Err((field.into(), reason.into()))
}

fn within(field: impl Into<String>, value: f64, from: f64, to: f64) -> Result<f64, Refused> {
    if (from..=to).contains(&value) {
        return Ok(value);
    }
    refused(field, format!("{value} is not from {from} to {to}"))
}

/// In JSON keys, in k6's tags and in the names of files.
fn name(field: impl Into<String>, text: &str) -> Result<String, Refused> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !text.is_empty() && text.chars().all(good) {
        return Ok(text.to_owned());
    }
    let reason = format!("{text:?} is not made of a-z, 0-9, - and _");
    refused(field, reason)
}

fn words(field: impl Into<String>, text: &str) -> Result<String, Refused> {
    match text.trim() {
        "" => refused(field, "is empty"),
        text => Ok(text.to_owned()),
    }
}

impl Scenario {
    pub(super) fn parse(text: &str, folder: &Path) -> Result<Self, Refused> {
        let mut json = serde_json::Deserializer::from_str(text);
        let written: written::Scenario =
            serde_path_to_error::deserialize(&mut json).map_err(|error| {
                let path = error.path().to_string();
                (path, error.into_inner().to_string())
            })?;
        json.end()
            .map_err(|error| (".".to_owned(), error.to_string()))?;
        Self::check(written, folder)
    }

    fn check(written: written::Scenario, folder: &Path) -> Result<Self, Refused> {
        let deadline_ms = within("deadline_ms", written.deadline_ms, 1.0, 1e3 * LONGEST_S)?;
        let load = match (written.made, written.trace) {
            (Some(made), None) => Load::Made(check_made(made)?),
            (None, Some(trace)) => Load::Trace(check_trace(trace, folder)?),
            (Some(_), Some(_)) => {
                return refused("trace", "there is `made` already: one of the two is wanted");
            }
            (None, None) => return refused("made", "is missing, and so is `trace`"),
        };
        let (stages, priorities) = match &load {
            Load::Made(made) => (
                made.stages.iter().map(|stage| &*stage.name).collect(),
                made.priorities.iter().map(|(name, _)| &**name).collect(),
            ),
            Load::Trace(_) => (vec![trace::STAGE], trace::PRIORITIES.to_vec()),
        };
        let thresholds = written.thresholds.into_iter().enumerate();
        let thresholds = thresholds.map(|(n, threshold)| {
            check_threshold(threshold, &stages, &priorities)
                .map_err(|(field, reason)| (format!("thresholds[{n}].{field}"), reason))
        });
        Ok(Self {
            name: name("name", &written.name)?,
            objective: words("objective", &written.objective)?,
            deadline: Duration::from_secs_f64(deadline_ms / 1e3),
            thresholds: thresholds.collect::<Result<_, _>>()?,
            load,
        })
    }
}

fn check_made(made: written::Made) -> Result<Made, Refused> {
    if made.stages.is_empty() {
        return refused("made.stages", "there are none");
    }
    let mut names = BTreeSet::new();
    let stages = made.stages.into_iter().enumerate().map(|(n, stage)| {
        let field = |name: &str| format!("made.stages[{n}].{name}");
        if !names.insert(stage.name.clone()) {
            return refused(field("name"), format!("{:?} is there twice", stage.name));
        }
        Ok(Stage {
            name: name(field("name"), &stage.name)?,
            duration: Duration::from_secs_f64(within(
                field("duration_s"),
                stage.duration_s,
                0.001,
                LONGEST_S,
            )?),
            from: pace(field("rate"), stage.rate)?,
            to: pace(field("to"), stage.to.unwrap_or(stage.rate))?,
            measured: stage.measured,
        })
    });
    let stages = stages.collect::<Result<_, _>>()?;
    let number = f64::from(made.keys.number);
    within("made.keys.number", number, 0.0, f64::from(MOST_KEYS))?;
    Ok(Made {
        stages,
        priorities: shares(made.priorities)?,
        users: made.users,
        keys: Keys {
            number: made.keys.number as usize,
            zipf: within("made.keys.zipf", made.keys.zipf, 0.0, 10.0)?,
        },
        run_ms: distribution("made.run_ms", made.run_ms, LONGEST_RUN_MS)?,
        bytes: distribution("made.bytes", made.bytes, MOST_BYTES)?,
    })
}

fn pace(field: String, rate: written::Rate) -> Result<Pace, Refused> {
    Ok(match rate {
        written::Rate::OfCapacity(share) => {
            Pace::OfCapacity(within(field, share, 0.0, MOST_OF_CAPACITY)?)
        }
        written::Rate::PerSecond(rate) => Pace::PerSecond(within(field, rate, 0.0, MOST_PER_S)?),
    })
}

/// In the order of the plan: `high` and `low` come first.
fn shares(shares: BTreeMap<String, f64>) -> Result<Vec<(String, f64)>, Refused> {
    let field = |name: &str| format!("made.priorities.{name}");
    let mut all = Vec::new();
    for (priority, share) in shares {
        if HeaderValue::from_str(&priority).is_err() {
            return refused(field(&priority), "cannot be sent in a header");
        }
        within(field(&priority), share, 0.0, 1.0)?;
        all.push((name(field(&priority), &priority)?, share));
    }
    let sum: f64 = all.iter().map(|(_, share)| share).sum();
    if (sum - 1.0).abs() > ABOUT_1 {
        let reason = format!("the shares make {sum} together, not 1");
        return refused("made.priorities", reason);
    }
    let place = |name: &str| trace::PRIORITIES.iter().position(|known| *known == name);
    all.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
    Ok(all)
}

fn distribution(
    field: &str,
    written: written::Distribution,
    most: f64,
) -> Result<Distribution, Refused> {
    Ok(match written {
        written::Distribution::Fixed(value) => {
            Distribution::Fixed(within(format!("{field}.fixed"), value, 0.0, most)?)
        }
        written::Distribution::Exponential(mean) => {
            Distribution::Exponential(within(format!("{field}.exponential"), mean, 0.0, most)?)
        }
        written::Distribution::Uniform([from, to]) => {
            within(format!("{field}.uniform[1]"), to, 0.0, most)?;
            within(format!("{field}.uniform[0]"), from, 0.0, to)?;
            Distribution::Uniform(from, to)
        }
    })
}

fn check_trace(trace: written::Trace, folder: &Path) -> Result<Trace, Refused> {
    let positive = |name: &str, value: f64, most: f64| {
        within(format!("trace.{name}"), value, f64::MIN_POSITIVE, most)
    };
    within("trace.minutes", trace.minutes as f64, 1.0, 1e6)?;
    within("trace.from_minute", trace.from_minute as f64, 0.0, 1e6)?;
    for (field, file) in [("counts", &trace.counts), ("keys", &trace.keys)] {
        let file = folder.join(file);
        if !file.is_file() {
            let reason = format!("{} is not there", file.display());
            return refused(format!("trace.{field}"), reason);
        }
    }
    Ok(Trace {
        counts: folder.join(trace.counts),
        keys: folder.join(trace.keys),
        from_minute: trace.from_minute,
        minutes: trace.minutes,
        speed_up: positive("speed_up", trace.speed_up, 1e6)?,
        sample: positive("sample", trace.sample, 1.0)?,
        utilisation: positive("utilisation", trace.utilisation, MOST_OF_CAPACITY)?,
    })
}

fn check_threshold(
    written: written::Threshold,
    stages: &[&str],
    priorities: &[&str],
) -> Result<Threshold, Refused> {
    let known = |field: &str, name: &str, all: &[&str]| {
        if all.contains(&name) {
            return Ok(());
        }
        let all = all.join(", ");
        refused(field, format!("there is no {name:?}; there are {all}"))
    };
    known("stage", &written.stage, stages)?;
    if let Some(priority) = &written.priority {
        known("priority", priority, priorities)?;
    }
    let share = matches!(written.figure, Figure::Success | Figure::Goodput);
    let bound = match (written.at_least, written.at_most, written.at_most_times) {
        (Some(least), None, None) if share => Bound::Least(within("at_least", least, 0.0, 1.0)?),
        (None, Some(most), None) if !share => {
            Bound::Most(within("at_most", most, f64::MIN_POSITIVE, 1e3 * LONGEST_S)?)
        }
        (None, None, Some(times)) if !share => {
            known("at_most_times.stage", &times.stage, stages)?;
            let factor = within("at_most_times.factor", times.factor, 1.0, 1e6)?;
            let stage = times.stage;
            Bound::Times { factor, stage }
        }
        _ if share => return refused("figure", "it wants `at_least`, and nothing else"),
        _ => return refused("figure", "it wants one of `at_most` and `at_most_times`"),
    };
    if written.figure == Figure::Goodput && written.priority.is_some() {
        return refused("priority", "goodput is of all priorities together");
    }
    Ok(Threshold {
        stage: written.stage,
        priority: written.priority,
        figure: written.figure,
        bound,
        objective: words("objective", &written.objective)?,
    })
}
