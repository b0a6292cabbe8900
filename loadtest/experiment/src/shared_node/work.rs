// SPDX-License-Identifier: Apache-2.0
//! What the service is asked: rules on one small project, so that a job is CPU time and hardly anything else.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use weir_replay::rng::SplitMix64;
use weir_replay::workload::{self, Request};
use weir_stage::processes::Processes;

use crate::replay::{Record, Replay};
use crate::shared_node::plan::Plan;

/// A caller that has no answer by then gives up.
const DEADLINE: Duration = Duration::from_secs(5);
/// The file of requests in a folder.
const WORKLOAD: &str = "workload.ndjson";
/// The project's name.
const PROJECT: &str = "shop";
/// So few that they are one joblet's work: weir-worker gives a joblet a core for each MiB.
const ITEMS: u32 = 400;
const WORDS: [&str; 8] = [
    "cotton", "shirt", "triangle", "hexagon", "blue", "organic", "sleeve", "summer",
];
/// Different ones, sent in turn: equal jobs that wait together would be one for the host.
const BODIES: usize = 512;
/// Share of the requests that are important.
const HIGH: f64 = 0.2;

/// The store, the bodies and how much work each is.
#[derive(Clone, Debug)]
pub struct Work {
    /// weir-worker's store, and where weir-replay finds bodies.
    pub folder: PathBuf,
}

impl Work {
    /// Writes the project and bodies with so many rules.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn make(folder: &Path, rules: usize) -> Result<Self> {
        let bodies = folder.join("bodies");
        fs::create_dir_all(&bodies).with_context(|| format!("creating {}", bodies.display()))?;
        fs::write(folder.join(format!("{PROJECT}.ndjson")), items())?;
        for number in 0..BODIES {
            fs::write(
                folder.join(body(number)),
                request(number, rules).to_string(),
            )?;
        }
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Writes a workload of requests at these moments to a folder of its own.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn workload(&self, folder: &Path, moments: &[Duration], seed: u64) -> Result<()> {
        let mut random = SplitMix64::new(seed);
        let request = |(number, at): (usize, &Duration)| Request {
            t_us: at.as_micros() as u64,
            key: PROJECT.to_owned(),
            priority: if random.unit() < HIGH { "high" } else { "low" }.to_owned(),
            user: String::new(),
            run_us: 0,
            bytes: 0,
            body: Some(body(number % BODIES)),
            sender: None,
        };
        let requests: Vec<Request> = moments.iter().enumerate().map(request).collect();
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let file = folder.join(WORKLOAD);
        workload::save(&requests, &file).with_context(|| format!("writing {}", file.display()))
    }

    /// Sends the workload of a folder to an address; `tick` is told the time gone by. Each request is sent once: who is
    /// refused does not come again.
    ///
    /// # Errors
    /// weir-replay fails, or another process has ended.
    pub(crate) fn send(
        &self,
        processes: &mut Processes,
        program: &Path,
        folder: &Path,
        target: SocketAddr,
        tick: impl FnMut(Duration),
    ) -> Result<Vec<Record>> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let replay = Replay {
            program,
            workload: &folder.join(WORKLOAD),
            bodies: Some(&self.folder),
            targets: &[target],
            deadline: DEADLINE,
            attempts: 1,
            backoff: None,
        };
        let replayed = replay.send(processes, &format!("replay-{name}"), folder, tick)?;
        Ok(replayed.records)
    }
}

/// Moments of requests that know nothing of one another: a Poisson process whose rate the plan changes. `one_core`
/// is how many a second are one core's work.
#[must_use]
pub fn moments(plan: &Plan, one_core: f64, seed: u64) -> Vec<Duration> {
    let mut random = SplitMix64::new(seed);
    let mut moments = Vec::new();
    let mut at = Duration::ZERO;
    loop {
        let rate = one_core * plan.load_at(at);
        at += Duration::from_secs_f64(-(1.0 - random.unit()).ln() / rate);
        if at >= plan.length() {
            return moments;
        }
        moments.push(at);
    }
}

fn body(number: usize) -> String {
    format!("bodies/{number}.json")
}

fn items() -> String {
    let mut random = SplitMix64::new(1);
    let mut text = String::new();
    for id in 0..ITEMS {
        let words = (0..40).map(|_| WORDS[(random.next_u64() % 8) as usize]);
        let description = words.collect::<Vec<_>>().join(" ");
        let item = json!({ "id": id.to_string(), "description": description });
        text += &format!("{item}\n");
    }
    text
}

/// Rules that rewrite each description so often; the last one reads it, so that none can be left out.
fn request(number: usize, rules: usize) -> Value {
    let rewrite = |rule: usize| {
        let case = ["titlecase", "lowercase"][rule % 2];
        json!({
            "name": format!("case {rule}"),
            "condition": [],
            "actions": [{"field": "description", "action": "texttransform", "value": case}],
        })
    };
    let mut operators: Vec<Value> = (0..rules).map(rewrite).collect();
    operators.push(json!({
        "name": "mark",
        "condition": [{"field": "description", "filter": "contains",
            "value": {"type": "static", "value": format!("hexagon {number}")}}],
        "actions": [{"field": "mark", "action": "set", "value": "yes"}],
    }));
    json!({
        "session_id": format!("shared-node-{number}"),
        "project_id": PROJECT,
        "operators": operators,
        "cache": false,
        "fields": ["id", "mark"],
        "format": "csv",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_at_the_rate_of_each_part() {
        let plan = Plan {
            load: 1.3,
            over: Duration::from_secs(100),
            calm_load: 0.5,
            calm: Duration::from_secs(100),
            rounds: 1,
        };
        let moments = moments(&plan, 50.0, 7);
        let part = |from: u64| {
            let part = |at: &&Duration| (from..from + 100).contains(&at.as_secs());
            moments.iter().filter(part).count() as f64
        };
        for (from, expected) in [(0, 6500.0), (100, 2500.0), (200, 6500.0)] {
            // Five deviations of a Poisson number.
            let far = 5.0 * f64::sqrt(expected);
            assert!((part(from) - expected).abs() < far, "{}", part(from));
        }
        assert!(moments.is_sorted());
    }

    #[test]
    fn no_two_bodies_are_equal_work() {
        assert_ne!(request(1, 3)["operators"], request(2, 3)["operators"]);
        assert_eq!(request(1, 3)["operators"].as_array().unwrap().len(), 4);
    }
}
