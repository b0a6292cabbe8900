// SPDX-License-Identifier: Apache-2.0
//! What callers are told of hosts decides where requests go.

use std::process::Command;
use std::time::Duration;

use weir_policy::{Overload, Selection};
use weir_sim::scenario::{Accept, Signal};
use weir_sim::workload::{Job, LOW, Work};
use weir_sim::{Scenario, simulate_watched};

use crate::{SECOND, jobs, keys, play, policy, scenario};

#[test]
fn a_host_that_is_too_slow_to_accept_passes_for_down_and_others_get_its_keys() {
    let run = SECOND / 5;
    let hot = || {
        let mut jobs = jobs(600, 1, SECOND / 100, run, 9);
        jobs.iter_mut().for_each(|job| job.work = Work::Whole(run));
        jobs
    };
    let used = |healthy: Duration| {
        let scenario = Scenario {
            policy: policy(Selection::Baseline, Overload::None),
            accept: Accept {
                free: 2,
                per_job: SECOND / 10,
                healthy,
            },
            orca: false,
            ..scenario()
        };
        let (mut hosts, mut down) = (std::collections::BTreeSet::new(), 0);
        let tell = |ended: weir_sim::Ended| {
            hosts.extend(ended.host);
        };
        let mut watch = |sample: weir_sim::Sample| down += u32::from(!sample.up);
        simulate_watched(&scenario, &keys(1), hot(), tell, &mut watch).unwrap();
        (hosts.len(), down > 0)
    };
    assert_eq!(used(Duration::MAX), (1, false));
    let (hosts, down) = used(SECOND);
    assert!(hosts > 1 && down, "{hosts}");
}

#[test]
fn many_jobs_that_wait_for_one_joblet_are_one_stalled_joblet() {
    let job = |at_ms, key, run| Job {
        at: Duration::from_millis(at_ms),
        key: Some(key),
        version: 0,
        class: LOW,
        user: None,
        sender: None,
        bytes: 1_000_000,
        work: Work::Whole(run),
        then: None,
    };
    // Both cores are busy for a while when twenty come for one key, and then one for another.
    let mut all: Vec<_> = (0..2).map(|key| job(0, key, 6 * SECOND)).collect();
    all.extend((0..20).map(|n| job(1000 + n, 2, SECOND / 100)));
    all.push(job(4000, 3, SECOND / 100));
    let shed = |signal| {
        let scenario = Scenario {
            hosts: 1,
            policy: policy(Selection::Dynamic, Overload::Breaker { queued_jobs: 5 }),
            signal,
            orca: false,
            ..scenario()
        };
        let ended = play(&scenario, &keys(4), all.clone());
        ended.iter().map(|ended| ended.shed_attempts).sum::<u32>()
    };
    assert!(shed(Signal::Jobs) > 0);
    assert_eq!(shed(Signal::Joblets), 0);
}

#[test]
fn with_a_caching_plan_every_key_goes_to_the_host_that_was_planned_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let workload = folder.path().join("workload.csv");
    let mut text = String::from("t_us,key,priority,user,run_us,bytes\n");
    for n in 0..400u64 {
        text += &format!("{},p{},low,,2000,1000\n", n * 5000, n % 8);
    }
    std::fs::write(&workload, text).unwrap();
    let out = folder.path().join("out.csv");
    let output = Command::new(env!("CARGO_BIN_EXE_weir-sim"))
        .args(["run", "--hosts", "4", "--selection", "caching-plan"])
        .arg("--workload")
        .arg(&workload)
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let out = std::fs::read_to_string(&out).unwrap();
    let mut lines = out.lines();
    let header: Vec<_> = lines.next().unwrap().split(',').collect();
    let column = |name| header.iter().position(|column| *column == name).unwrap();
    let (key, host, reason) = (column("key"), column("host"), column("reason"));
    let mut homes = std::collections::BTreeMap::new();
    for line in lines {
        let cells: Vec<_> = line.split(',').collect();
        assert_eq!(cells[reason], "planned", "{line}");
        let home = homes
            .entry(cells[key].to_owned())
            .or_insert_with(|| cells[host].to_owned());
        assert_eq!(home, cells[host]);
    }
    let hosts: std::collections::BTreeSet<_> = homes.values().collect();
    assert_eq!((homes.len(), hosts.len()), (8, 4), "two keys each");
}
