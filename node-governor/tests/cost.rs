// SPDX-License-Identifier: Apache-2.0
//! What the governor itself takes, at a tick of 10 ms with events on 64 made-up cores:
//!
//! `cargo test --release -p weir-governor --test cost -- --ignored --nocapture`

use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kernel::{Kernel, wait_for};
use producer::Producer;
use weir_events::layout::WRITTEN;
use weir_events::{Geometry, Owner};
use weir_governor::sense::now;

// The other tests use the rest of them.
#[allow(dead_code)]
#[path = "governor/kernel.rs"]
mod kernel;
#[allow(dead_code)]
#[path = "governor/producer.rs"]
mod producer;

const CORES: u16 = 64;
const TIME: Duration = Duration::from_secs(20);

/// Of all its threads, exactly: `/proc/PID/stat` only counts who is seen running a hundred times a second, and who
/// wakes by the same timer is seen too often or never.
fn cpu_seconds(pid: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let nanoseconds = threads.map(|thread| {
        let stat = std::fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap();
        stat.split(' ').next().unwrap().parse::<f64>().unwrap()
    });
    nanoseconds.sum::<f64>() / 1e9
}

fn resident(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let lines = status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("Rss"));
    lines.collect::<Vec<_>>().join(", ").replace('\t', " ")
}

/// A thread of this process that says it is on a core of its own. Every tenth call takes five ticks, the others
/// less than one.
fn play(kernel: &Kernel, core: u16, stop: &AtomicBool) {
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let pid = std::process::id();
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
    let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19);
    let owner = Owner { pid, tid };
    let lane = u32::from(core);
    let started = started.unwrap().parse().unwrap();
    let mut lane = Producer::claim_as(kernel, lane, owner, started);
    for turn in u64::from(core).. {
        if stop.load(Ordering::Relaxed) {
            return lane.release();
        }
        lane.enter(1, now(), Some(core));
        std::thread::sleep(Duration::from_millis(if turn % 10 == 0 { 50 } else { 4 }));
        lane.leave(1, now(), Some(core));
        std::thread::sleep(Duration::from_millis(4));
    }
}

fn governor(kernel: &Kernel) -> Child {
    let config = kernel.config_file("{ three_state: { threshold: 20ms } }");
    let ports = kernel.path("ports");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-governor"));
    command.arg("--root").arg(kernel.path("")).arg("run");
    command
        .arg("--config")
        .arg(config)
        .arg("--ports-file")
        .arg(&ports);
    let governor = command.stderr(Stdio::null()).spawn().unwrap();
    wait_for("the governor", || ports.exists());
    governor
}

#[test]
#[ignore = "a measurement"]
fn what_the_governor_takes() {
    let kernel = Kernel::new(CORES.into());
    let mut governor = governor(&kernel);
    let pid = governor.id();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for core in 0..CORES {
            let (kernel, stop) = (&kernel, &stop);
            scope.spawn(move || play(kernel, core, stop));
        }
        std::thread::sleep(Duration::from_secs(1));
        let (start, before) = (Instant::now(), cpu_seconds(pid));
        let events = events(&kernel);
        std::thread::sleep(TIME);
        let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds(pid) - before);
        let events = self::events(&kernel) - events;
        stop.store(true, Ordering::Relaxed);
        println!(
            "{cpu:.2} CPU seconds in {wall:.1} s = {:.2} % of a core; {events:.0} events; {}",
            100.0 * cpu / wall,
            resident(pid)
        );
    });
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&governor),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    assert!(governor.wait().unwrap().success());
}

/// What was ever written to the lanes: the count that each has in its head.
fn events(kernel: &Kernel) -> f64 {
    let ring = std::fs::File::open(kernel.ring()).unwrap();
    let geometry = Geometry::new(64, 16).unwrap();
    let written = |lane| {
        let mut written = [0; 8];
        let at = geometry.head(lane) + WRITTEN;
        ring.read_exact_at(&mut written, at).unwrap();
        u64::from_le_bytes(written)
    };
    (0..u32::from(CORES)).map(written).sum::<u64>() as f64
}
