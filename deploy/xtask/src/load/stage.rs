// SPDX-License-Identifier: Apache-2.0
//! The static stage: emulated hosts, callers' Envoys with a static configuration or told by weir-control.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use weir_stage::processes::Processes;

use crate::demo::bootstrap;
use crate::demo::control::{self, Settings};
use crate::demo::hosts;
use crate::demo::programs::Programs;
use crate::demo::sampler::Sights;
use crate::demo::stage::{alone, with_control};
use crate::demo::ways::Balancer;
use crate::load::against::{Against, Queue};
use crate::load::ways::{SELECTION, Way, levels, scrape};

pub(super) const HOSTS: usize = 6;
/// Emulated: a job holds one, asleep.
pub(super) const CORES: usize = 4;
pub(super) const CALLERS: usize = 2;
/// A first visit of a key costs a fetch of some milliseconds: the runs are the work.
const FETCH_BYTES_PER_SECOND: &str = "1G";
const FETCH_BASE_US: &str = "1000";
/// Room for all keys of all scenarios.
const CACHE_BYTES: &str = "8G";

/// Starts a way's processes.
pub(super) fn start(
    programs: &Programs,
    way: Way,
    queue: Queue,
    deadline_ms: f64,
    processes: &mut Processes,
    folder: &Path,
) -> Result<Against> {
    let command = || host(&programs.worker, queue);
    let hosts = hosts::start_each(processes, HOSTS, command, folder)?;
    // Whoever asked has given up by then.
    let timeout = format!("{}ms", deadline_ms.ceil());
    let (callers, control) = match way {
        Way::Weir => {
            let settings = Settings {
                selection: SELECTION,
                overload: "dagor",
                // Not looked at by this policy.
                breaker_queued_jobs: 100,
                dagor: levels(),
                scrape: scrape(),
                cores: CORES,
                timeout: &timeout,
            };
            let config = control::config(&settings, &hosts, &programs.filter);
            let (callers, admin) = with_control(processes, programs, CALLERS, &config, folder)?;
            (callers, Some(admin))
        }
        _ => {
            let timeout = format!("{:.3}s", deadline_ms / 1e3);
            let bootstrap = |node: &str| {
                let least = Balancer::LeastRequest;
                bootstrap::alone(node, least, &hosts, &timeout, &way.filters())
            };
            let callers = alone(processes, programs, CALLERS, bootstrap, folder)?;
            (callers, None)
        }
    };
    Ok(Against {
        callers,
        sights: Sights {
            named: hosts.clone(),
            hosts,
            control,
        },
        _mesh: None,
    })
}

fn host(program: &Path, queue: Queue) -> Command {
    let mut command = Command::new(program);
    command
        .arg("--emulate")
        .args(["--listen", "127.0.0.1:0"])
        .args(["--cores", &CORES.to_string()])
        .args(host_flags(queue));
    command
}

/// How hosts are emulated.
pub(super) fn host_flags(queue: Queue) -> Vec<String> {
    let mut flags = vec![
        "--cache-bytes",
        CACHE_BYTES,
        "--fetch-base-us",
        FETCH_BASE_US,
        "--fetch-bytes-per-second",
        FETCH_BYTES_PER_SECOND,
    ];
    if queue == Queue::Arrival {
        flags.extend(["--priority", "high=0", "--priority", "low=0"]);
    }
    flags.into_iter().map(str::to_owned).collect()
}
