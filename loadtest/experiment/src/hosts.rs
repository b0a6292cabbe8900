// SPDX-License-Identifier: Apache-2.0
//! The hosts. New processes for every way, so all start with empty caches.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use weir_stage::processes::Processes;
use weir_stage::worker;

use crate::demo::plan::{Plan, Work};
use crate::demo::workload::Workload;

/// Starts the hosts and returns their addresses.
pub(super) fn start(
    processes: &mut Processes,
    program: &Path,
    plan: &Plan,
    workload: &Workload,
    folder: &Path,
) -> Result<Vec<SocketAddr>> {
    let command = || command(program, plan, workload);
    start_each(processes, plan.hosts, command, folder)
}

/// Starts so many, each with the command and a file for its ports, and returns their addresses.
pub(crate) fn start_each(
    processes: &mut Processes,
    hosts: usize,
    command: impl Fn() -> Command,
    folder: &Path,
) -> Result<Vec<SocketAddr>> {
    let names: Vec<String> = (1..=hosts).map(|n| format!("host-{n}")).collect();
    for name in &names {
        let mut command = command();
        command
            .arg("--ports-file")
            .arg(folder.join(format!("{name}.ports")))
            .env("RUST_LOG", "warn");
        processes.start(name, command)?;
    }
    let address =
        |name: &String| worker::address(processes, name, &folder.join(format!("{name}.ports")));
    names.iter().map(address).collect()
}

fn command(program: &Path, plan: &Plan, workload: &Workload) -> Command {
    let mut command = Command::new(program);
    match &plan.work {
        Work::Emulated(trace) => command
            .arg("--emulate")
            .args(["--fetch-bytes-per-second", trace.fetch_bytes_per_second]),
        Work::Real(_) => command.arg("--store").args(&workload.feeds),
    };
    command
        .args(["--listen", "127.0.0.1:0"])
        .args(["--cores", &plan.cores.to_string()])
        .args(["--cache-bytes", plan.cache_bytes]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stage::command::describe;

    #[test]
    fn emulated_hosts_are_told_so_and_real_ones_where_the_feeds_are() {
        let workload = |feeds: Option<&str>| Workload {
            file: "w.ndjson".into(),
            feeds: feeds.map(Into::into),
            description: String::new(),
        };
        let said = |plan: &Plan, workload: &Workload| {
            describe(&command(Path::new("weir-worker"), plan, workload))
        };
        let emulated = said(&Plan::emulated(true), &workload(None));
        assert!(emulated.starts_with("weir-worker --emulate "), "{emulated}");
        let real = said(&Plan::real(true), &workload(Some("feeds")));
        assert!(real.starts_with("weir-worker --store feeds "), "{real}");
        assert!(!real.contains("emulate"), "{real}");
    }
}
