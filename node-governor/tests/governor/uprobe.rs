// SPDX-License-Identifier: Apache-2.0
//! A program that knows nothing of the governor, watched by the real kernel; its frequencies are plain files.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use weir_governor::apply::groups::{Group, Groups, Members};
use weir_governor::root::Root;
use weir_governor::run::Governor;
use weir_governor::sense::now;
use weir_governor::sensed::Nanos;
use weir_needs::{Need, skip};

use crate::kernel::{Kernel, wait_for};

const IDLE: &str = "1000000";
const HOT: &str = "2000000";
const OVER: &str = "2600000";

/// Stays on the second core; a line leads into the hot function and the next out of it.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
__attribute__((noinline)) int search(void)
{
	puts("in");
	fflush(stdout);
	return getchar();
}
int main(void)
{
	cpu_set_t second;
	CPU_ZERO(&second);
	CPU_SET(1, &second);
	sched_setaffinity(0, sizeof(second), &second);
	while (getchar() > 0) {
		search();
		puts("out");
		fflush(stdout);
	}
}
"#;

struct Program {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(binary: &Path) -> Self {
        let mut command = Command::new(binary);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            input,
            lines,
        }
    }

    fn go(&mut self, where_to: &str) {
        writeln!(self.input).unwrap();
        assert_eq!(self.lines.next().unwrap().unwrap(), where_to);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn build(kernel: &Kernel) -> std::path::PathBuf {
    let (source, binary) = (kernel.path("program.c"), kernel.path("program"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg("-O2").arg("-o").arg(&binary).arg(&source);
    assert!(compiler.status().unwrap().success());
    binary
}

fn start(kernel: &Kernel, binary: &Path, more: &str) -> Governor {
    let probe = format!(
        "uprobes: [ {{ function: 0, binary: {}, symbol: search{more} }} ]",
        binary.display()
    );
    let config = kernel.config(&format!("{{ three_state: {{}} }}\n{probe}"));
    Governor::start(config, &kernel.root()).unwrap()
}

/// None, and said so, where nothing can be watched.
fn machine() -> Option<Kernel> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let allowed = weir_uprobe::doctor();
    if let Err(error) = allowed {
        skip(Need::Uprobes, error);
        return None;
    }
    if cores == 1 {
        skip(Need::Cores, "this machine has one");
        return None;
    }
    Some(Kernel::new(2))
}

/// A cgroup of the test's own.
struct Cgroup {
    groups: Groups,
    name: String,
}

impl Cgroup {
    fn make(name: &str) -> Option<Self> {
        let groups = Groups::find(&Root::new("/")).unwrap();
        match groups.make(name) {
            Ok(Some(_)) => Some(Self {
                groups,
                name: name.to_owned(),
            }),
            made => {
                skip(Need::Cgroups, format!("{made:?}"));
                None
            }
        }
    }

    fn group(&self) -> std::io::Result<Group> {
        self.groups.existing(&Members::Cgroup(self.name.clone()))
    }

    fn add(&self, program: &Program) {
        for door in self.group().unwrap().doors() {
            std::fs::write(door, program.child.id().to_string()).unwrap();
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel is done with a process a moment after it has been waited for.
        wait_for("an empty cgroup", || {
            self.group().and_then(Group::remove).is_ok()
        });
    }
}

#[test]
fn of_two_that_run_the_same_file_the_one_in_another_cgroup_is_left_alone() {
    let Some(kernel) = machine() else {
        return;
    };
    let name = format!("weir-uprobe-{}", std::process::id());
    let Some(cgroup) = Cgroup::make(&name) else {
        return;
    };
    let binary = build(&kernel);
    // Asked for, it is everybody's.
    let mut governor = start(&kernel, &binary, ", cgroup: all");
    let mut stranger = Program::start(&binary);
    stranger.go("in");
    governor.tick(now(), false);
    assert_eq!(kernel.speeds(), [IDLE, HOT]);
    drop(governor);
    stranger.go("out");
    let mut governor = start(&kernel, &binary, &format!(", cgroup: {name}"));
    let mut tick = |later: u64| {
        governor.tick(Nanos(now().0 + later), false);
        kernel.speeds()
    };
    let mut service = Program::start(&binary);
    cgroup.add(&service);
    stranger.go("in");
    assert_eq!(tick(0), [IDLE, IDLE], "another service's function");
    service.go("in");
    assert_eq!(tick(0), [IDLE, HOT]);
    service.go("out");
    assert_eq!(tick(0), [IDLE, IDLE]);
    // Within a second or so, one that comes into the cgroup counts.
    cgroup.add(&stranger);
    assert_eq!(tick(2_000_000_000), [IDLE, OVER]);
    let ignored = page(&governor)
        .lines()
        .any(|line| line == "weir_governor_threads_ignored_total{reason=\"cgroup\"} 1.0");
    assert!(ignored, "{}", page(&governor));
    drop((stranger, service));
}

fn page(governor: &Governor) -> String {
    let mut page = String::new();
    let registry = weir_governor::metrics::registry(governor.book());
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    page
}

#[test]
fn a_program_that_tells_nothing_has_its_core_made_fast_while_its_function_runs() {
    let Some(kernel) = machine() else {
        return;
    };
    let binary = build(&kernel);
    let mut governor = start(&kernel, &binary, "");
    let mut tick = |later: u64| {
        governor.tick(Nanos(now().0 + later), false);
        kernel.speeds()
    };
    let mut program = Program::start(&binary);
    assert_eq!(tick(0), [IDLE, IDLE]);
    for _ in 0..3 {
        program.go("in");
        assert_eq!(tick(0), [IDLE, HOT]);
        assert_eq!(tick(450_000_000), [IDLE, OVER]);
        program.go("out");
        assert_eq!(tick(0), [IDLE, IDLE]);
    }
    program.go("in");
    assert_eq!(tick(0), [IDLE, HOT]);
    drop(program);
    assert_eq!(tick(0), [IDLE, IDLE]);
    drop(governor);
    assert!((0..2).all(|core| kernel.is_as_found(core)));
}
