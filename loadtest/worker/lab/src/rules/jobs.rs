// SPDX-License-Identifier: Apache-2.0
//! Jobs on a real host with one core, by what it finds in its cache.

mod host;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use weir_feeds::Format;

use super::cost;
use super::items::{self, Project};
use super::samples::{Figure, Samples};
use super::sets::HEAVY;
use host::{Answer, Host};

const PART: &str = "jobs";

/// What a reader of the rows has to know.
pub(super) const NOTE: &str = "jobs: the 14 rules over HTTP on a host with one core; wall time is \
    that until the last byte of the answer, CPU time that of host and client together; each round \
    starts hosts with empty caches, objects come from the page cache.";

/// Projects that jobs are about.
pub(super) struct Jobs {
    _folder: TempDir,
    projects: Vec<(u64, Format, Project)>,
}

impl Jobs {
    pub(super) fn make(sizes: &[u64], seed: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut projects = Vec::new();
        for items in sizes.iter().copied() {
            for format in [Format::Ndjson, Format::Parquet] {
                eprintln!("making a project of {items} items as {}", format.suffix());
                let name = format!("{items}-{}", format.suffix());
                let project = items::project(folder.path(), &name, items, seed, format)?;
                projects.push((items, format, project));
            }
        }
        Ok(Self {
            _folder: folder,
            projects,
        })
    }

    pub(super) fn measure(&self, samples: &mut Samples) -> Result<()> {
        for (items, format, project) in &self.projects {
            let about = format!("{items} items, {}", format.suffix());
            eprintln!("  jobs: {about}");
            measure(&about, *items, project, samples).with_context(|| format!("jobs: {about}"))?;
        }
        Ok(())
    }
}

fn measure(about: &str, items: u64, project: &Project, samples: &mut Samples) -> Result<()> {
    let cold = format!("{about}: cold");
    let mut add = |what: &str, cost| {
        let figure = Figure::Cost(cost);
        samples.add(
            PART,
            format!("{about}: {what}"),
            (items, Some(&cold)),
            figure,
        );
    };
    let mut left = Vec::new();
    let mut post = |host: &Host, (shared, own), cache| {
        let body = body(&project.project, shared, own)?;
        let (answer, cost) = cost::of(|| host.post("/", &body))?;
        ensure!(
            answer.cache == cache,
            "cache: {} instead of {cache}",
            answer.cache
        );
        left.push(answer.items);
        Ok(cost)
    };
    let host = Host::start(&project.store)?;
    add("cold", post(&host, (1, 1), "miss")?);
    add("items cached", post(&host, (2, 2), "hit")?);
    add("shared rules cached", post(&host, (1, 2), "hit")?);
    add("all cached", post(&host, (1, 1), "hit")?);
    host.stop()?;
    let host = Host::start(&project.store)?;
    let prefetch = json!({"session_id": "lab", "project_id": project.project}).to_string();
    let (Answer { .. }, prefetched) = cost::of(|| host.post("/prefetch", &prefetch))?;
    let job = post(&host, (1, 1), "hit")?;
    host.stop()?;
    add("prefetch and job", prefetched + job);
    add("of these the job", job);
    // Otherwise the jobs were not the same work.
    left.dedup();
    ensure!(left.len() == 1 && left[0] > 0, "answers of {left:?} items");
    Ok(())
}

/// The 14 rules and two more, whose numbers tell which results are the same: 1 to 9.
fn body(project: &str, shared: u8, own: u8) -> Result<String> {
    let mut body: Value = serde_json::from_str(HEAVY.request)?;
    body["project_id"] = project.into();
    for (list, field, number) in [
        ("shared_operators", "shared_label", shared),
        ("operators", "own_label", own),
    ] {
        let mark = json!({"actions": [{"field": field, "action": "set", "value": number}]});
        let operators = body[list].as_array_mut().context("a set without a list")?;
        operators.push(mark);
    }
    Ok(body.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::engine;

    #[test]
    fn bodies_share_what_their_numbers_say() {
        let ids = |shared, own| {
            let plan =
                engine::compile(body("shop", shared, own).unwrap().as_bytes(), true).unwrap();
            (plan.shared.id(), plan.own.id())
        };
        let (one, other, third) = (ids(1, 1), ids(1, 2), ids(2, 2));
        assert!(one.0 == other.0 && one.1 != other.1);
        assert!(other.0 != third.0 && other.1 == third.1);
    }

    #[test]
    fn a_host_finds_in_its_cache_what_the_rows_say() {
        let jobs = Jobs::make(&[300], 1).unwrap();
        let mut samples = Samples::default();
        jobs.measure(&mut samples).unwrap();
        jobs.measure(&mut samples).unwrap();
        assert_eq!(samples.rows().len(), 12);
        assert!(samples.rows().iter().all(|row| row.figures.len() == 2));
    }
}
