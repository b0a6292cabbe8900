// SPDX-License-Identifier: Apache-2.0
//! Caches and bandwidth of memory, on made-up files of resctrl: no machine here has it. Such a file keeps what was
//! written, and a folder goes with its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use weir_governor::check::report;
use weir_governor::config;
use weir_governor::run::Governor;

use crate::kernel::{Kernel, wait_for};
use crate::power::{HERACLES, configured_as, service};
use crate::processes::{self, Process};

/// A gigabyte a second, so that 900 MB are too much.
const MEMORY: &str = "memory_bandwidth: 1 GB/s";
const GROUP: &str = "weir-jobs";
/// Of 20 ways: a tenth.
const FIRST: &str = "L3:0=3\n";

/// Two cores, a service and a job that says who it is.
struct Node {
    kernel: Kernel,
    config: PathBuf,
    _service: Process,
}

impl Node {
    fn new(policy: &str) -> Node {
        let (kernel, service) = (Kernel::new(2), service());
        let pid = kernel.path("pid");
        let job = format!(
            "[/bin/sh, -c, 'echo $$ > {}; exec sleep 600']",
            pid.display()
        );
        let config = configured_as(&kernel, &service, policy, &job);
        Node {
            kernel,
            config,
            _service: service,
        }
    }

    fn heracles() -> Node {
        let node = Node::new(&format!("heracles: {{ {HERACLES}, {MEMORY} }}"));
        node.mount();
        node
    }

    /// An L3 cache of 20 ways, bandwidth in tenths, counters that stand still.
    fn mount(&self) {
        let files = [
            ("schemata", "    MB:0= 100\n    L3:0=fffff\n"),
            ("info/L3/cbm_mask", "fffff\n"),
            ("info/L3/min_cbm_bits", "1\n"),
            ("info/L3/shareable_bits", "c0000\n"),
            ("info/MB/min_bandwidth", "10\n"),
            ("info/MB/bandwidth_gran", "10\n"),
            (
                "info/L3_MON/mon_features",
                "llc_occupancy\nmbm_total_bytes\n",
            ),
        ];
        for (file, text) in files {
            put(&self.resctrl(file), text);
        }
        self.count("", 0);
    }

    fn resctrl(&self, file: &str) -> PathBuf {
        self.kernel.path("sys/fs/resctrl").join(file)
    }

    fn group(&self, file: &str) -> PathBuf {
        self.resctrl(GROUP).join(file)
    }

    /// Bytes that a group has read in all.
    fn count(&self, group: &str, bytes: u64) {
        let counter = self.resctrl(group);
        let counter = counter.join("mon_data/mon_L3_00/mbm_total_bytes");
        put(&counter, &format!("{bytes}\n"));
    }

    fn start(&self) -> Process {
        let config = self.config.to_str().unwrap();
        let mut run = processes::command(&self.kernel, &["run", "--config", config]);
        run.stdout(Stdio::null()).stderr(Stdio::null());
        Process(run.spawn().unwrap())
    }

    fn has(&self, schemata: &str) -> bool {
        read(&self.group("schemata")) == schemata
    }

    /// The job's process, once it has said so.
    fn pid(&self) -> String {
        read(&self.kernel.path("pid")).trim().to_owned()
    }

    fn has_job(&self) -> bool {
        let tasks = read(&self.group("tasks"));
        let pid = self.pid();
        tasks.lines().any(|task| task == pid)
    }

    fn job_is(&self, state: char) -> bool {
        let stat = read(Path::new(&format!("/proc/{}/stat", self.pid())));
        let after = stat.rsplit(')').next().unwrap_or_default();
        after.trim_start().starts_with(state)
    }

    fn is_as_found(&self) -> bool {
        let schemata = read(&self.resctrl("schemata"));
        !self.resctrl(GROUP).exists() && schemata.contains("L3:0=fffff")
    }

    /// Why it does not start, in this process.
    fn refusal(&self) -> String {
        let config = config::load(&self.config).unwrap();
        let error = Governor::start(config, &self.kernel.root()).err();
        error.expect("it is refused").to_string()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A governor that was killed leaves it.
        let pid = self.pid().parse().ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Never seen in part.
fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let partial = path.with_extension("partial");
    fs::write(&partial, text).unwrap();
    fs::rename(partial, path).unwrap();
}

#[test]
fn a_job_has_its_part_of_the_cache_and_loses_its_core_while_memory_is_too_busy() {
    let node = Node::heracles();
    let mut governor = node.start();
    wait_for("a tenth of the cache", || node.has(FIRST));
    wait_for("the job in the group", || node.has_job());
    // Nothing is read, so that no way pays: what was tried goes back.
    wait_for("a way more", || node.has("L3:0=7\n"));
    wait_for("which goes back", || node.has(FIRST));
    let mut bytes = 0;
    wait_for("the job stands still", || {
        bytes += 1 << 30;
        node.count(GROUP, bytes);
        node.job_is('T')
    });
    wait_for("the job goes on", || node.job_is('S'));
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(0));
    assert!(node.is_as_found());
}

#[test]
fn after_kill_9_the_group_is_removed_by_the_watchdog_the_next_start_and_restore() {
    let node = Node::heracles();
    let governor = node.start();
    wait_for("the job in the group", || node.has_job());
    governor.kill();
    wait_for("what was found", || node.is_as_found());

    let governor = node.start();
    wait_for("the job in the group again", || node.has_job());
    governor.abandon();
    assert!(node.has_job(), "somebody has put things back");
    // Whoever comes next makes the group anew.
    put(&node.group("old"), "");
    let governor = node.start();
    wait_for("another group with the job", || {
        !node.group("old").exists() && node.has_job()
    });
    governor.abandon();
    assert!(node.has_job(), "somebody has put things back");
    let (code, text) = processes::restore(&node.kernel);
    assert_eq!(code, Some(0), "{text}");
    assert!(node.is_as_found());

    // The job has gone on all the time, and ends with this one.
    let mut governor = node.start();
    wait_for("the job in the group for the last time", || node.has_job());
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(0));
    assert!(node.is_as_found());
}

#[test]
fn steps_of_parties_are_written_and_again_when_another_program_writes() {
    let fields = "least: 0, elastic: 1, batch: none, cache_steps: 4, bandwidth_steps: 3";
    let node = Node::new(&format!("parties: {{ {fields} }}"));
    node.mount();
    let mut governor = node.start();
    // No tail is known: the service has all.
    let least = "L3:0=1\nMB:0=10\n";
    wait_for("the least", || node.has(least));
    for other in ["    MB:0= 100\n    L3:0=00001\n", "    MB:0=  10\n"] {
        put(&node.group("schemata"), other);
        wait_for("it again", || node.has(least));
    }
    fs::rename(node.resctrl(GROUP), node.kernel.path("removed")).unwrap();
    wait_for("the group again", || node.has(least));
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(0));
    assert!(node.is_as_found());
}

#[test]
fn resctrl_is_refused_where_it_is_not_mounted_lacks_something_or_has_somebody_elses_group() {
    let node = Node::new(&format!("heracles: {{ {HERACLES}, {MEMORY} }}"));
    let says = |reason: &str| {
        let error = node.refusal();
        assert!(error.contains(reason), "{error}");
        assert!(!node.resctrl(GROUP).join("schemata").exists());
    };
    says(":7: core_policy.heracles.memory_bandwidth: no resctrl at ");
    says("mount it");
    node.mount();
    put(&node.resctrl("info/L3_MON/mon_features"), "llc_occupancy\n");
    says("core_policy.heracles.memory_bandwidth: ");
    says("does not offer counters of the bandwidth of memory");
    node.mount();
    fs::create_dir(node.resctrl(GROUP)).unwrap();
    says("weir-jobs: is there already");
    assert!(node.resctrl(GROUP).exists());
    let said = report(&node.kernel.root()).text;
    let line = "caches     resctrl is mounted: 20 ways of the L3 cache, bandwidth of memory by 10 %, its counters\n";
    assert!(said.contains(line), "{said}");
}
