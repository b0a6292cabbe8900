// SPDX-License-Identifier: Apache-2.0
//! What it is worth to leave out steps that cannot matter (document 001, section 3.3, step 3).

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use weir_feeds::Format;
use weir_feeds::generate::{Folder, Settings, generate};
use weir_rules::{Feed, Plan};

use super::cost::{self, Cost};
use super::engine;
use super::items;
use super::samples::{Figure, Samples};

const PART: &str = "optimiser";

/// Projects, each with some requests.
const PROJECTS: usize = 12;

/// Generated requests and the items they are about.
pub(super) struct Optimiser {
    feeds: Vec<Feed>,
    requests: Vec<Request>,
    items: u64,
}

struct Request {
    feed: usize,
    body: Vec<u8>,
    written: Plan,
    optimised: Plan,
    /// Whether its answer leaves fields out, so that what is written to them does not matter.
    selects: bool,
}

impl Optimiser {
    /// The rows together have about as many items as asked for.
    pub(super) fn make(items: u64, seed: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let each = (items / PROJECTS as u64).max(10);
        let settings = Settings {
            seed,
            projects: PROJECTS,
            items_min: each,
            items_max: each,
            format: Format::Parquet,
            ..Settings::default()
        };
        let index = generate(&settings, &Folder::open(folder.path(), false)?, &mut |_| {})?;
        let (store, runtime) = (items::open(folder.path())?, engine::runtime()?);
        let (mut feeds, mut requests) = (Vec::new(), Vec::new());
        for project in index.projects {
            for name in project.rules {
                let file = folder.path().join("rules").join(name);
                let body = fs::read(&file).with_context(|| file.display().to_string())?;
                let written: Value = serde_json::from_slice(&body)?;
                requests.push(Request {
                    selects: ["fields", "omit"].iter().any(|key| !written[key].is_null()),
                    feed: feeds.len(),
                    written: engine::compile(&body, false)?,
                    optimised: engine::compile(&body, true)?,
                    body,
                });
            }
            feeds.push(engine::fetch(&runtime, &store, &project.project)?);
        }
        let items = requests
            .iter()
            .map(|request| feeds[request.feed].items() as u64);
        Ok(Self {
            items: items.sum(),
            feeds,
            requests,
        })
    }

    pub(super) fn measure(&self, round: u32, samples: &mut Samples) -> Result<()> {
        eprintln!("  optimiser: {} requests", self.requests.len());
        let mut costs = Vec::new();
        for request in &self.requests {
            let feed = &self.feeds[request.feed];
            // Whoever comes second finds the items in the processor's cache.
            let (written, optimised) = if round.is_multiple_of(2) {
                let written = evaluate(&request.written, feed)?;
                (written, evaluate(&request.optimised, feed)?)
            } else {
                let optimised = evaluate(&request.optimised, feed)?;
                (evaluate(&request.written, feed)?, optimised)
            };
            ensure!(
                written.0 == optimised.0,
                "an optimised answer has other bytes"
            );
            costs.push((request.selects, written.1, optimised.1));
        }
        let mut add = |requests: &str, items, written: Cost, optimised: Cost| {
            let base = format!("{requests}, as written");
            samples.add(PART, base.clone(), (items, None), Figure::Cost(written));
            let what = format!("{requests}, optimised");
            samples.add(PART, what, (items, Some(&base)), Figure::Cost(optimised));
        };
        let sum = |costs: &[(bool, Cost, Cost)]| {
            let written = costs.iter().map(|(_, written, _)| *written).sum();
            let optimised = costs.iter().map(|(_, _, optimised)| *optimised).sum();
            (written, optimised)
        };
        let (written, optimised) = sum(&costs);
        add("all requests", self.items, written, optimised);
        for (requests, selects) in [
            ("requests that name or omit fields", true),
            ("requests that show all fields", false),
        ] {
            let some: Vec<_> = costs
                .iter()
                .filter(|cost| cost.0 == selects)
                .copied()
                .collect();
            if !some.is_empty() {
                let (written, optimised) = sum(&some);
                add(requests, 0, written, optimised);
            }
        }
        let ((), written) = self.compile(false)?;
        let ((), optimised) = self.compile(true)?;
        add("compiling all requests", 0, written, optimised);
        Ok(())
    }

    fn compile(&self, optimise: bool) -> Result<((), Cost)> {
        cost::of(|| {
            for request in &self.requests {
                engine::compile(&request.body, optimise)?;
            }
            Ok(())
        })
    }

    pub(super) fn note(&self) -> String {
        let selecting = self.requests.iter().filter(|request| request.selects);
        format!(
            "optimiser: {} generated requests of {PROJECTS} projects, evaluated and written; {} name or omit fields.",
            self.requests.len(),
            selecting.count()
        )
    }
}

fn evaluate(plan: &Plan, feed: &Feed) -> Result<(u64, Cost)> {
    cost::of(|| engine::write_nowhere(plan, &engine::apply(plan, feed)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimised_requests_are_compared_with_themselves() {
        let optimiser = Optimiser::make(240, 1).unwrap();
        let mut samples = Samples::default();
        for round in 0..2 {
            optimiser.measure(round, &mut samples).unwrap();
        }
        for row in samples.rows() {
            assert_eq!(row.figures.len(), 2, "{}", row.what);
            assert_eq!(
                samples.ratio(row).is_some(),
                row.what.ends_with("optimised")
            );
        }
    }
}
