// SPDX-License-Identifier: Apache-2.0
//! The governor with cores to divide: this machine's own groups, real processes, kills.
//!
//! The service is a loop that is stopped and let go: of two cores it has one, and both while it works. Where groups
//! cannot be made, the tests are skipped.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use weir_governor::apply::groups::{Group, Groups, Members};
use weir_governor::cores::Cores;
use weir_governor::root::Root;
use weir_needs::{Need, skip};

use crate::kernel::wait_or_tell;
use crate::processes::{Numbers, Process};

/// The service's, always, and the service's or a job's.
pub(crate) const RESERVED: [u32; 1] = [0];
pub(crate) const BOTH: [u32; 2] = [0, 1];

/// A node of two cores: a service, jobs and a governor's configuration; nothing of it is left when it goes out of
/// scope.
pub(crate) struct Node {
    name: String,
    folder: tempfile::TempDir,
    groups: Groups,
    service: Option<(Group, Process)>,
    jobs: Vec<String>,
}

impl Node {
    /// With these jobs, each a name and what a shell does. None where the machine has not what it takes.
    pub(crate) fn new(jobs: &[(&str, &str)]) -> Option<Node> {
        static NODES: AtomicU32 = AtomicU32::new(0);
        let cores = std::thread::available_parallelism().unwrap().get();
        if !rustix::process::geteuid().is_root() {
            skip(Need::Root, "cores are divided");
            return None;
        }
        if cores < 2 {
            skip(Need::Cores, "this machine has one");
            return None;
        }
        let number = NODES.fetch_add(1, Ordering::Relaxed);
        let mut node = Node {
            name: format!("weir-test-{}-{number}", std::process::id()),
            folder: tempfile::tempdir().unwrap(),
            groups: Groups::find(&Root::new("/")).unwrap(),
            service: None,
            jobs: jobs.iter().map(|(name, _)| (*name).to_owned()).collect(),
        };
        if !node.start_service() {
            skip(Need::Cgroups, "none can be made here");
            return None;
        }
        node.configure(jobs);
        Some(node)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// At rest. False where no group can be made for it.
    fn start_service(&mut self) -> bool {
        let path = format!("{}/service", self.name);
        let Some(mut group) = self.groups.make(&path).unwrap() else {
            return false;
        };
        group.set_cores(&BOTH.into()).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        let process = Process(command.spawn().unwrap());
        process.signal(Signal::STOP);
        for door in group.doors() {
            std::fs::write(door, process.0.id().to_string()).unwrap();
        }
        self.service = Some((group, process));
        true
    }

    /// Jobs as the configuration has them.
    pub(crate) fn yaml(&self, jobs: &[(&str, &str)]) -> String {
        let mut text = String::new();
        for (job, does) in jobs {
            let does = does
                .replace("DONE", &self.path(job).display().to_string())
                .replace("END", &self.path("end").display().to_string());
            writeln!(text, "  - name: {job}").unwrap();
            writeln!(text, "    command: [/bin/sh, -c, {does:?}]").unwrap();
        }
        text
    }

    fn configure(&self, jobs: &[(&str, &str)]) {
        let text = self.yaml(jobs);
        // Any work at all is much.
        let blocks = "blocks: { reserved: 0, small: 1, large: none, large_above: 0.05, small_below: 0.02, patience: 100ms }";
        self.configure_as(blocks, &text, "tick: 10ms\n");
    }

    /// With this policy, jobs as YAML has them, and anything else.
    pub(crate) fn configure_as(&self, policy: &str, jobs: &str, more: &str) {
        let name = &self.name;
        let text = format!(
            "service: {{ cgroup: {name}/service }}\n\
             core_policy:\n  {policy}\n\
             batch: {{ cgroup: {name}/batch, logs: {logs}{user} }}\n\
             state_directory: {state}\n\
             events: {{ path: {events}, lanes: 16, events_per_lane: 16 }}\n\
             admin: {{ listen: '127.0.0.1:0' }}\n{more}jobs:\n{jobs}",
            // They write into a folder of the test's.
            user = match rustix::process::geteuid().is_root() {
                true => ", user: root",
                false => "",
            },
            logs = self.path("logs").display(),
            state = self.path("state").display(),
            events = self.path("weir.events").display(),
        );
        std::fs::write(self.path("g.yaml"), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-governor"));
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    pub(crate) fn start(&self) -> Process {
        let ports = self.path("ports");
        let _ = std::fs::remove_file(&ports);
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("governor.log"))
            .unwrap();
        let mut run = self.command(&["run", "--config"]);
        run.arg(self.path("g.yaml")).arg("--ports-file").arg(&ports);
        let process = Process(run.stderr(log).spawn().unwrap());
        self.wait("the governor", || ports.exists());
        process
    }

    pub(crate) fn wait(&self, what: &str, is: impl FnMut() -> bool) {
        let log = || std::fs::read_to_string(self.path("governor.log")).unwrap_or_default();
        wait_or_tell(what, is, log);
    }

    pub(crate) fn service_works(&self, works: bool) {
        let signal = if works { Signal::CONT } else { Signal::STOP };
        self.service.as_ref().unwrap().1.signal(signal);
    }

    pub(crate) fn service_has(&self, cores: &[u32]) -> bool {
        let cores: Cores = cores.iter().copied().collect();
        self.service.as_ref().unwrap().0.cores().unwrap() == cores
    }

    /// Of a job that has been started.
    fn job(&self, name: &str) -> Option<Group> {
        let path = format!("{}/batch/{name}", self.name);
        self.groups.existing(&Members::Cgroup(path)).ok()
    }

    pub(crate) fn is_frozen(&self, job: &str) -> bool {
        self.job(job).is_some_and(|job| job.is_frozen().unwrap())
    }

    /// What the job has written, line by line.
    pub(crate) fn done(&self, job: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(job)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Ends each [`JOB`] that runs.
    pub(crate) fn may_end(&self) {
        std::fs::write(self.path("end"), "").unwrap();
    }

    /// Nothing is frozen and the service has what it was found with.
    fn is_as_found(&self) -> bool {
        self.service_has(&BOTH) && !self.jobs.iter().any(|job| self.is_frozen(job))
    }

    /// The address of the governor's admin page.
    pub(crate) fn admin(&self) -> String {
        let ports = std::fs::read_to_string(self.path("ports")).unwrap();
        let ports: serde_json::Value = serde_json::from_str(&ports).unwrap();
        ports["admin"].as_str().unwrap().to_owned()
    }

    /// All that the governor shows.
    pub(crate) fn state(&self) -> serde_json::Value {
        let page = crate::processes::get(&self.admin(), "/state");
        let (_, body) = page.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut groups = Vec::new();
        for job in &self.jobs {
            groups.extend(self.job(job));
        }
        for mut group in groups {
            let _ = group.thaw();
            for process in group.processes().unwrap_or_default() {
                let _ = kill_process(process, Signal::KILL);
            }
            let empty = || {
                group
                    .processes()
                    .is_ok_and(|processes| processes.is_empty())
            };
            wait_or_tell("an empty group", empty, String::new);
            let _ = group.remove();
        }
        if let Some((group, process)) = self.service.take() {
            process.kill();
            let _ = group.remove();
        }
        for parent in ["batch", ""] {
            let members = Members::Cgroup(
                format!("{}/{parent}", self.name)
                    .trim_end_matches('/')
                    .into(),
            );
            if let Ok(group) = self.groups.existing(&members) {
                let _ = group.remove();
            }
        }
    }
}

/// Says that it has begun, works until [`Node::may_end`] (or for minutes, where nobody is left to
/// say so), and says that it has ended. A job of a second would end before what a test waits for
/// wherever the machine is slow to look.
pub(crate) const JOB: &str = "echo begun >> DONE; i=0; while [ ! -e END ] && [ $i -lt 100000000 ]; do i=$((i+1)); done; echo ended >> DONE";

#[test]
fn jobs_give_way_to_the_service_go_on_after_it_and_run_one_after_the_other() {
    let jobs = [
        ("fails", "echo begun >> DONE; exit 3"),
        ("long", JOB),
        ("last", "echo ended >> DONE"),
    ];
    let Some(node) = Node::new(&jobs) else { return };
    let mut governor = node.start();
    node.wait("the second job", || node.done("long") == ["begun"]);
    assert!(node.service_has(&RESERVED));
    assert_eq!(node.job("long").unwrap().cores().unwrap(), [1].into());
    for _ in 0..3 {
        node.service_works(true);
        node.wait("both cores", || {
            node.service_has(&BOTH) && node.is_frozen("long")
        });
        node.service_works(false);
        node.wait("the job", || {
            node.service_has(&RESERVED) && !node.is_frozen("long")
        });
    }
    node.may_end();
    node.wait("the last job", || node.done("last") == ["ended"]);
    // Nobody needs them any more.
    node.wait("both cores", || node.service_has(&BOTH));
    assert_eq!(node.done("long"), ["begun", "ended"]);
    let state = node.state();
    let jobs = state["shares"]["jobs"].as_array().unwrap();
    let code = |name: &str| jobs.iter().find(|job| job["name"] == name).unwrap()["code"].clone();
    assert_eq!(
        (code("fails"), code("long")),
        (3.into(), 0.into()),
        "{state}"
    );
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(0));
    assert!(node.is_as_found());
}

#[test]
fn a_killed_governor_leaves_nothing_frozen_and_the_next_one_takes_the_jobs_up() {
    let Some(node) = Node::new(&[("long", JOB), ("next", "echo ended >> DONE")]) else {
        return;
    };
    let governor = node.start();
    node.wait("the job", || node.done("long") == ["begun"]);
    node.service_works(true);
    node.wait("it to give way", || node.is_frozen("long"));
    governor.kill();
    node.wait("what was found", || node.is_as_found());
    let mut governor = node.start();
    node.wait("it to give way again", || node.is_frozen("long"));
    node.service_works(false);
    node.may_end();
    node.wait("the next job", || node.done("next") == ["ended"]);
    assert_eq!(node.done("long"), ["begun", "ended"], "once");
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(0));
    assert!(node.is_as_found());
}

#[test]
fn a_service_that_is_started_anew_gets_its_cores_again() {
    let Some(mut node) = Node::new(&[("long", JOB)]) else {
        return;
    };
    let mut governor = node.start();
    node.wait("the job", || {
        node.done("long") == ["begun"] && node.service_has(&RESERVED)
    });
    let (group, process) = node.service.take().unwrap();
    process.kill();
    group.remove().unwrap();
    // Nothing is known of a service that is not there: the job waits for it after a while.
    node.wait("the safe state", || node.is_frozen("long"));
    assert!(node.start_service());
    node.wait("its core", || node.service_has(&RESERVED));
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(0));
    assert!(node.is_as_found());
}

#[test]
fn a_second_governor_is_refused_with_the_process_of_the_first() {
    let Some(node) = Node::new(&[("long", JOB)]) else {
        return;
    };
    let governor = node.start();
    let mut second = node.command(&["run", "--config"]);
    let second = second.arg(node.path("g.yaml")).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{said}");
    let holder = format!("held by process {}", governor.0.id());
    assert!(said.contains(&holder), "{said}");
    node.wait("the job", || node.done("long") == ["begun"]);
}

/// Each takes about a second; `cargo xtask test --long` has a thousand.
#[test]
fn governors_are_killed_at_random_and_nothing_is_frozen_unowned_or_lost() {
    let runs = std::env::var("WEIR_KILLS").ok();
    let runs: u64 = runs.and_then(|runs| runs.parse().ok()).unwrap_or(12);
    let short =
        "echo begun >> DONE; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo ended >> DONE";
    let names: Vec<String> = (0..4).map(|number| format!("job{number}")).collect();
    let mut kills = 0;
    let mut numbers = Numbers(7);
    while kills < runs {
        let jobs: Vec<_> = names.iter().map(|name| (name.as_str(), short)).collect();
        let Some(node) = Node::new(&jobs) else { return };
        let ended = || {
            names
                .iter()
                .all(|name| node.done(name) == ["begun", "ended"])
        };
        let before = kills;
        while !ended() {
            assert!(
                kills - before < 1000,
                "waited in vain for the end of all jobs"
            );
            let governor = node.start();
            node.service_works(numbers.below(3) == 0);
            std::thread::sleep(Duration::from_millis(numbers.below(250)));
            if numbers.below(4) == 0 {
                governor.abandon();
                let restored = node
                    .command(&["restore", "--state"])
                    .arg(node.path("state"))
                    .status();
                assert_eq!(restored.unwrap().code(), Some(0), "kill {kills}");
                assert!(node.is_as_found(), "kill {kills}");
            } else {
                governor.kill();
                node.wait("what was found", || node.is_as_found());
            }
            kills += 1;
            for name in &names {
                assert!(
                    node.done(name).len() <= 2,
                    "kill {kills}: {:?}",
                    node.done(name)
                );
            }
        }
        let mut last = node.start();
        node.wait("both cores", || node.service_has(&BOTH));
        last.signal(Signal::TERM);
        assert_eq!(last.code(), Some(0));
        assert!(node.is_as_found());
        eprintln!("{kills} kills: nothing frozen, unowned or lost");
    }
}
