// SPDX-License-Identifier: Apache-2.0
//! Document 004's machine (*Cloud Computing Architecture*, semester project report, part 4): a service that has
//! core 0, jobs at core 1 and at cores 2 and 3, and the limits between.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use weir_guest::Guest;

use crate::{governor, group, work};

/// The service's cgroup, as systemd would call it.
pub(crate) const SERVICE: &str = "system.slice/memcached.service";
/// Its file of cores.
pub(crate) const SERVICE_CORES: &str = "system.slice/memcached.service/cpuset.cpus";
/// What the kernel makes of it.
pub(crate) const SERVICE_RUNS_ON: &str = "system.slice/memcached.service/cpuset.cpus.effective";

/// What the service is told to use. Under 60 % of core 0; over 130 % of both cores; and whatever there is.
pub(crate) const CALM: &str = "0.3";
pub(crate) const BUSY: &str = "1.6";
pub(crate) const ALL: &str = "9";

/// In a tick the service's threads come to a core that it has
/// got, also where four cores share one of the machine's.
const MACHINE: &str = "
tick: 500ms
service: { cgroup: system.slice/memcached.service }
policy: { powersave: {} }
core_policy:
  blocks: { reserved: 0, small: 1, large: 2-3, large_above: 0.6, small_below: 1.3 }
batch: { cgroup: weir, logs: /var/log/weir, user: 0 }
jobs:";

/// Of four jobs two long ones, as the document has it.
pub(crate) const FOUR: &str = "
  - { name: dedup, queue: short, threads: 1, command: [/bin/weir-guest-work, /run/work/dedup, '{threads}'] }
  - { name: canneal, queue: medium, threads: 2, command: [/bin/weir-guest-work, /run/work/canneal, '{threads}'] }
  - { name: freqmine, queue: long, threads: 2, command: [/bin/weir-guest-work, /run/work/freqmine, '{threads}'] }
  - { name: ferret, queue: long, threads: 2, command: [/bin/weir-guest-work, /run/work/ferret, '{threads}'] }";

/// In the order of the file.
pub(crate) const JOBS: [&str; 4] = ["dedup", "canneal", "freqmine", "ferret"];

/// A service with this load in a cgroup without cores of its own, and a governor.
pub(crate) fn begin(guest: &mut Guest, load: &str) -> Result<()> {
    begin_with(guest, load, FOUR)
}

/// The same in a cgroup that is there.
pub(crate) fn begin_in(guest: &mut Guest, load: &str) -> Result<()> {
    begin_jobs(guest, load)?;
    govern(guest)
}

/// As [`begin`], with jobs as items of the list and what else the configuration shall have behind them.
pub(crate) fn begin_with(guest: &mut Guest, load: &str, jobs: &str) -> Result<()> {
    guest.sh(&format!("mkdir -p {}/{SERVICE}", group::MOUNT))?;
    begin_jobs(guest, load)?;
    govern_with(guest, jobs)
}

fn begin_jobs(guest: &mut Guest, load: &str) -> Result<()> {
    for job in JOBS {
        work::order(guest, job, "0.2")?;
    }
    serve(guest, load)
}

/// Starts the service in its cgroup.
pub(crate) fn serve(guest: &mut Guest, load: &str) -> Result<()> {
    work::order(guest, "memcached", load)?;
    work::start(guest, "memcached", 2, SERVICE)
}

/// Starts the governor with the four jobs.
pub(crate) fn govern(guest: &mut Guest) -> Result<()> {
    govern_with(guest, FOUR)
}

/// Starts the governor with these jobs, as items of the list.
pub(crate) fn govern_with(guest: &mut Guest, jobs: &str) -> Result<()> {
    governor::start(guest, &format!("{MACHINE}{jobs}"))
}

/// The service's load from now on.
pub(crate) fn load(guest: &mut Guest, cores: &str) -> Result<()> {
    work::order(guest, "memcached", cores)
}

/// Waits until the service has core 0 and these jobs the others.
pub(crate) fn wait_for_small(guest: &mut Guest, small: &str, large: &str) -> Result<()> {
    wait_for(guest, "0", &[(small, "1", false), (large, "2-3", false)])
        .with_context(|| format!("{small} should run at 1 and {large} at 2-3"))
}

/// Waits until the service has cores 0 and 1, and the job of the small block is frozen.
pub(crate) fn wait_for_large(guest: &mut Guest, small: &str, large: &str) -> Result<()> {
    let small_file = format!("weir/{small}/cgroup.freeze");
    let large_file = format!("weir/{large}/cpuset.cpus");
    group::wait_for(
        guest,
        &[
            (SERVICE_CORES, "0-1"),
            (&small_file, "1"),
            (&large_file, "2-3"),
        ],
    )?;
    group::wait_until_frozen(guest, &format!("weir/{small}"))
}

/// Stops the governor when the service has cores 0 and 1, and the job of the small block is frozen: so it stays.
pub(crate) fn stop_at_large(guest: &mut Guest, small: &str, large: &str) -> Result<()> {
    for _ in 0..LOOKS {
        wait_for_large(guest, small, large)?;
        guest.sh("read pid < /run/governor.pid; kill -STOP $pid")?;
        if says_large(guest, small)? {
            return Ok(());
        }
        guest.sh("read pid < /run/governor.pid; kill -CONT $pid")?;
    }
    bail!("the service does not keep both blocks")
}

/// Whether it is so now.
pub(crate) fn says_large(guest: &mut Guest, small: &str) -> Result<bool> {
    let said = guest.sh(&format!(
        "cd {}; cat {SERVICE_CORES} weir/{small}/cgroup.freeze",
        group::MOUNT
    ))?;
    Ok(said == "0-1\n1\n")
}

/// Waits until the service has those cores, and each of these jobs its own, frozen or not.
pub(crate) fn wait_for(
    guest: &mut Guest,
    service: &str,
    jobs: &[(&str, &str, bool)],
) -> Result<()> {
    let mut files = vec![(SERVICE_CORES.to_owned(), service)];
    for (job, cores, frozen) in jobs {
        files.push((format!("weir/{job}/cpuset.cpus"), cores));
        let frozen = if *frozen { "1" } else { "0" };
        files.push((format!("weir/{job}/cgroup.freeze"), frozen));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(file, what)| (&**file, *what)).collect();
    group::wait_for(guest, &files)
}

/// What the governor says of the service's cores and the jobs.
pub(crate) fn shares(guest: &mut Guest) -> Result<Value> {
    let page = guest.sh("wget -q -O - http://127.0.0.1:9414/state")?;
    let page: Value = serde_json::from_str(&page)?;
    ensure!(page["shares"].is_object(), "{page}");
    Ok(page["shares"].clone())
}

/// Waits until what the governor says is so.
pub(crate) fn wait_until_told(guest: &mut Guest, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    let mut said = Value::Null;
    for _ in 0..LOOKS {
        said = shares(guest)?;
        if is_so(&said) {
            return Ok(said);
        }
    }
    bail!("the governor says: {said}")
}

/// Each takes some hundredths of a second.
const LOOKS: usize = 200;

/// Whether these are the states of the jobs.
pub(crate) fn are(said: &Value, states: [&str; 4]) -> bool {
    let jobs = said["jobs"].as_array();
    jobs.is_some_and(|jobs| jobs.iter().map(|job| &job["state"]).eq(states))
}

/// Ends those jobs that wait for it, one after another as they get a place, and sees that each of all has run once.
pub(crate) fn finish(guest: &mut Guest) -> Result<()> {
    load(guest, "0")?;
    for job in JOBS {
        work::order(guest, job, "end 0")?;
    }
    for job in JOBS {
        guest.wait_until(&format!("grep -qs ended /var/log/weir/{job}.log"))?;
    }
    each_has_run_once(guest)
}

/// By what they have written.
pub(crate) fn each_has_run_once(guest: &mut Guest) -> Result<()> {
    for job in JOBS {
        let log = guest.sh(&format!("cat /var/log/weir/{job}.log"))?;
        let lines: Vec<&str> = log.lines().collect();
        ensure!(
            matches!(lines[..], [began, ended] if began.starts_with("began") && ended.starts_with("ended")),
            "{job} has written:\n{log}"
        );
    }
    Ok(())
}
