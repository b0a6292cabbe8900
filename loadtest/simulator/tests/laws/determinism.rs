// SPDX-License-Identifier: Apache-2.0
//! The seed decides everything.

use std::path::Path;
use std::process::Command;

use weir_policy::{Overload, Selection};

use crate::{SECOND, jobs, keys, overloads, play, policy, scenario};

/// `weir-sim run` with a seed: what it prints and what it writes.
fn run(workload: &Path, out: &Path, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir-sim"))
        .args([
            "run",
            "--hosts",
            "3",
            "--cores",
            "2",
            "--overload",
            "breaker",
        ])
        .args(["--seed", &seed.to_string()])
        .arg("--workload")
        .arg(workload)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    (output.stdout, std::fs::read(out).unwrap())
}

#[test]
fn one_seed_gives_the_same_bytes_and_another_gives_others() {
    let folder = tempfile::tempdir().unwrap();
    let workload = folder.path().join("workload.csv");
    let mut text = String::from("t_us,key,priority,user,run_us,bytes\n");
    for n in 0..2000u64 {
        let (key, run) = (n * 7919 % 40, 1000 + n * 31 % 9000);
        text += &format!("{},p{key},low,,{run},1000000\n", n * 1500);
    }
    std::fs::write(&workload, text).unwrap();
    let out = folder.path().join("out.csv");
    let first = run(&workload, &out, 1);
    assert_eq!(first, run(&workload, &out, 1));
    let (summary, records) = run(&workload, &out, 2);
    assert_ne!(first.0, summary);
    assert_ne!(first.1, records);
}

#[test]
fn every_policy_is_deterministic() {
    for selection in Selection::ALL {
        for overload in overloads() {
            let scenario = weir_sim::Scenario {
                policy: policy(selection, overload),
                ..scenario()
            };
            let play = || {
                let jobs = jobs(2000, 30, SECOND / 100, SECOND / 10, 5);
                format!("{:?}", play(&scenario, &keys(30), jobs))
            };
            assert_eq!(play(), play(), "{selection:?} {overload:?}");
        }
    }
}

#[test]
fn shards_that_have_rested_when_tables_go_out_may_be_many_or_few() {
    let with = |cache_shards| {
        let scenario = weir_sim::Scenario {
            policy: policy(Selection::Dynamic, Overload::None),
            publish: SECOND,
            cache_shards,
            ..scenario()
        };
        let jobs = jobs(2000, 300, SECOND / 100, SECOND / 10, 5);
        format!("{:?}", play(&scenario, &keys(300), jobs))
    };
    let few = with(1);
    for many in [4, 1024] {
        assert_eq!(few, with(many), "{many}");
    }
    assert_ne!(few, with(0), "what is known of caches matters here");
}
