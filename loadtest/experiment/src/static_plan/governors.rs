// SPDX-License-Identifier: Apache-2.0
//! A weir-governor for each node of the plan, all with the same plan.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use weir_mesh::Ports;

use crate::cgroups::Cgroups;
use crate::colocation::governor::{self, Jobs};
use crate::colocation::jobs::Job;
use crate::governor::Governor;
use crate::static_plan::timeline::{self, Course};
use crate::static_plan::way::{NODES, SERVICE, Way, node_of};

/// What they govern.
pub struct Place<'a> {
    /// Memcached's, and where those of jobs are made.
    pub cgroups: &'a Cgroups,
    /// All of the plan.
    pub jobs: &'a [Job],
    /// weir-governor.
    pub program: &'a Path,
    /// For their files, a folder of each.
    pub folder: &'a Path,
}

/// Those that run, in the order of [`NODES`].
pub struct Governors {
    folder: PathBuf,
    all: Vec<Jobs>,
    /// Of their pages, known to all of them.
    _ports: Ports,
}

impl Governors {
    /// Starts them and waits until all govern.
    ///
    /// # Errors
    /// One refuses its configuration, or does not say that it is ready.
    pub fn start(way: Way, place: &Place<'_>) -> Result<Self> {
        let mut ports = Ports::of_this_process();
        let addresses: io::Result<Vec<_>> = NODES.iter().map(|_| ports.loopback()).collect();
        let addresses = addresses?;
        let start = |node: &&str| -> Result<Jobs> {
            let folder = place.folder.join(node);
            std::fs::create_dir_all(&folder)?;
            let configuration = configuration(way, node, place, &addresses);
            let governor = Governor::start(place.program, None, &configuration, &folder)?;
            place.cgroups.keep(governor.pid())?;
            let of_node = |job: &&Job| node_of(job.name) == Some(node);
            Ok(Jobs::of(
                governor,
                place.jobs.iter().filter(of_node).count(),
            ))
        };
        let all: Result<_> = NODES
            .iter()
            .map(|node| start(node).with_context(|| format!("the node {node}")))
            .collect();
        Ok(Self {
            folder: place.folder.to_owned(),
            all: all?,
            _ports: ports,
        })
    }

    /// Sees what has ended.
    ///
    /// # Errors
    /// One has ended itself, or does not say.
    pub fn look(&mut self, now: std::time::Duration) -> Result<()> {
        self.all.iter_mut().try_for_each(|jobs| jobs.look(now))
    }

    /// Whether all jobs of all nodes have.
    #[must_use]
    pub fn are_done(&self) -> bool {
        self.all.iter().all(|jobs| jobs.all().is_some())
    }

    /// Ends them, which puts everything back, and reads what they have written down.
    ///
    /// # Errors
    /// One could not put back, or its timeline cannot be read.
    pub fn end(self) -> Result<Vec<Course>> {
        for jobs in self.all {
            jobs.end()?;
        }
        let mut courses = Vec::new();
        for node in NODES {
            let file = logs(&self.folder, node).join(weir_governor::timeline::FILE);
            courses.extend(timeline::read(&file, node)?);
        }
        Ok(courses)
    }
}

fn logs(folder: &Path, node: &str) -> PathBuf {
    folder.join(node).join("jobs")
}

fn configuration(way: Way, node: &str, place: &Place<'_>, ports: &[SocketAddr]) -> Value {
    let nodes = NODES.iter().zip(ports).map(|(name, port)| {
        let core = way.core(name);
        let mut written = json!({ "name": name, "cores": core, "url": format!("http://{port}") });
        if *name == SERVICE {
            written["service"] = core.into();
        }
        written
    });
    let steps = way.steps().into_iter().map(|step| {
        json!({
            "job": step.job,
            "node": step.node,
            "cores": way.core(step.node),
            "after": step.after,
        })
    });
    let own = NODES.iter().zip(ports).find(|(name, _)| **name == node);
    let mut written = json!({
        "core_policy": { "static_plan": {
            "node": node,
            "nodes": nodes.collect::<Value>(),
            "steps": steps.collect::<Value>(),
        }},
        "jobs": place.jobs.iter().map(governor::job).collect::<Value>(),
        "batch": {
            "cgroup": format!("{}/{node}", place.cgroups.batch()),
            // Their files are in a folder of this user's.
            "user": rustix::process::geteuid().as_raw(),
            "logs": logs(place.folder, node),
            "on_stop": "end",
        },
        "admin": { "listen": own.map(|(_, port)| port.to_string()) },
        "events": { "path": place.folder.join(node).join("weir.events") },
        "state_directory": place.folder.join(node).join("state"),
    });
    if node == SERVICE {
        written["service"] = json!({ "cgroup": place.cgroups.service() });
    }
    written
}
