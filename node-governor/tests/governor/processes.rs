// SPDX-License-Identifier: Apache-2.0
//! The program itself, and programs that tell it of hot functions.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use weir_events::{FunctionId, Ring};
use weir_governor::run::{Governor, Running};
use weir_telemetry::collector::{Collector, text};

use crate::kernel::{Kernel, wait_for, wait_or_tell};

/// Of this machine, with room: those that the producers' threads may be on are governed.
const CORES: usize = 64;
const IDLE: &str = "1000000";

pub(crate) fn command(kernel: &Kernel, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-governor"));
    command.arg("--root").arg(kernel.path("")).args(arguments);
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn output(kernel: &Kernel, arguments: &[&str]) -> (Option<i32>, String) {
    let Output {
        status,
        stderr,
        stdout,
    } = command(kernel, arguments).output().unwrap();
    let text = [stdout, stderr].concat();
    (status.code(), String::from_utf8_lossy(&text).into_owned())
}

pub(crate) fn restore(kernel: &Kernel) -> (Option<i32>, String) {
    let state = kernel.state();
    output(kernel, &["restore", "--state", state.to_str().unwrap()])
}

/// A process that is killed when it goes out of scope.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    pub(crate) fn code(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// The governor's child that watches over it; keepers of jobs are children, too.
    fn watchdog(&self) -> Option<Pid> {
        let pid = self.0.id();
        let children = format!("/proc/{pid}/task/{pid}/children");
        let children = std::fs::read_to_string(children).unwrap();
        let watches = |pid: &&str| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == b"watch")
        };
        let watchdog = children.split_whitespace().find(watches)?;
        Pid::from_raw(watchdog.parse().unwrap())
    }

    /// Kills the governor and, just before, its watchdog.
    pub(crate) fn abandon(self) {
        kill_process(self.watchdog().unwrap(), Signal::KILL).unwrap();
        self.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a governor and waits until it governs.
fn governor(kernel: &Kernel) -> Process {
    governor_with(kernel, Stdio::null(), "")
}

/// The same with its standard error there, and under these commands of the shell.
fn governor_with(kernel: &Kernel, stderr: Stdio, shell: &str) -> Process {
    let config = kernel.config_file("{ three_state: { threshold: 40ms } }");
    let ports = kernel.path("ports");
    let _ = std::fs::remove_file(&ports);
    let mut run = command(kernel, &["run", "--config", config.to_str().unwrap()]);
    run.arg("--ports-file").arg(&ports);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell} exec \"$@\""), "sh"]);
    command.arg(run.get_program()).args(run.get_args());
    let process = Process(
        command
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap(),
    );
    wait_for("the governor", || ports.exists());
    process
}

fn all_as_found(kernel: &Kernel) -> bool {
    (0..CORES).all(|policy| kernel.is_as_found(policy))
}

fn all_idle(kernel: &Kernel) -> bool {
    kernel.speeds().iter().all(|speed| speed == IDLE)
}

/// A process with two threads that go in and out of a hot function; see [`producer`].
fn producing(kernel: &Kernel) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "processes::producer", "--ignored"]);
    command.env(RING, kernel.ring());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Process(command.spawn().unwrap())
}

const RING: &str = "WEIR_TEST_RING";

#[test]
fn a_collector_gets_metrics_and_a_span_for_each_decision() {
    let kernel = Kernel::new(CORES);
    let collector = Collector::start();
    let config = kernel.config_file("{ three_state: { threshold: 40ms } }");
    let mut run = command(&kernel, &["run", "--config", config.to_str().unwrap()]);
    collector.told_by(&mut run);
    let _governor = Process(
        run.stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let (service, _) = collector.metric("weir_governor_ticks");
    assert_eq!(service, "weir-governor");
    let (service, span) = collector.span("a decision", |span| span.name == "decision");
    assert_eq!(service, "weir-governor");
    assert!(text(&span.attributes, "late").is_some());
}

/// No test: what the others start as a process.
#[test]
#[ignore = "runs until it is killed"]
fn producer() {
    let Some(path) = std::env::var_os(RING).map(PathBuf::from) else {
        return;
    };
    let ring = Ring::attach(path);
    std::thread::scope(|scope| {
        for number in 0..2 {
            let ring = &ring;
            scope.spawn(move || {
                let function = FunctionId::new(number).unwrap();
                for turn in 0u64.. {
                    let hot = ring.enter(function);
                    std::thread::sleep(Duration::from_millis(5 + turn * 37 % 90));
                    drop(hot);
                    std::thread::sleep(Duration::from_millis(turn * 13 % 20));
                }
            });
        }
    });
}

#[test]
fn every_signal_that_asks_for_the_end_puts_back_what_was_found() {
    for signal in [
        Signal::TERM,
        Signal::INT,
        Signal::HUP,
        Signal::QUIT,
        Signal::ALARM,
        Signal::USR1,
        Signal::USR2,
    ] {
        let kernel = Kernel::new(CORES);
        let mut governor = governor(&kernel);
        wait_for("idle cores", || all_idle(&kernel));
        governor.signal(signal);
        assert_eq!(governor.code(), Some(0), "{signal:?}");
        assert!(all_as_found(&kernel), "{signal:?}");
    }
}

#[test]
fn after_a_kill_restore_puts_back_what_was_found_and_then_does_nothing() {
    let kernel = Kernel::new(CORES);
    let governor = governor(&kernel);
    wait_for("idle cores", || all_idle(&kernel));
    let (code, text) = restore(&kernel);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("held by process"), "{text}");
    governor.abandon();
    assert!(all_idle(&kernel));
    assert_eq!(restore(&kernel).0, Some(0));
    assert!(all_as_found(&kernel));
    kernel.write(0, "scaling_governor", "performance");
    assert_eq!(restore(&kernel).0, Some(0));
    assert_eq!(kernel.read(0, "scaling_governor"), "performance");
}

#[test]
fn after_a_kill_everything_is_put_back_though_nobody_asks() {
    let kernel = Kernel::new(CORES);
    let governor = governor(&kernel);
    wait_for("idle cores", || all_idle(&kernel));
    governor.kill();
    wait_for("what was found", || all_as_found(&kernel));
}

#[test]
fn a_watchdog_that_was_killed_is_replaced() {
    let kernel = Kernel::new(2);
    let governor = governor(&kernel);
    wait_for("a watchdog", || governor.watchdog().is_some());
    let first = governor.watchdog().unwrap();
    kill_process(first, Signal::KILL).unwrap();
    wait_for("another watchdog", || {
        governor.watchdog().is_some_and(|second| second != first)
    });
    wait_for("idle cores", || kernel.speeds() == [IDLE, IDLE]);
    governor.kill();
    let as_found = || kernel.is_as_found(0) && kernel.is_as_found(1);
    wait_for("what was found", as_found);
}

/// What a service manager hears next.
fn heard(manager: &UnixDatagram) -> String {
    let mut buffer = [0; 64];
    let read = manager.recv(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[..read]).into_owned()
}

#[test]
fn the_service_manager_hears_of_the_loop_as_long_as_that_moves() {
    let kernel = Kernel::new(1);
    let path = kernel.path("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let environment = format!(
        "export WATCHDOG_USEC=40000 NOTIFY_SOCKET={};",
        path.display()
    );
    let mut governor = governor_with(&kernel, Stdio::null(), &environment);
    assert_eq!(heard(&manager), "READY=1\nWATCHDOG=1");
    for _ in 0..3 {
        assert_eq!(heard(&manager), "WATCHDOG=1");
    }
    // A file of the kernel's that does not answer, once the loop asks.
    let file = kernel.policy(0).join("affected_cpus");
    let full = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut answer = None;
    wait_for("the question", || {
        let mut write = std::fs::File::options();
        answer = write.write(true).custom_flags(nonblock).open(&file).ok();
        answer.is_some()
    });
    manager.set_nonblocking(true).unwrap();
    while manager.recv(&mut [0; 64]).is_ok() {}
    manager.set_nonblocking(false).unwrap();
    // Fifty times as long as between two heartbeats.
    manager
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    assert!(
        manager.recv(&mut [0; 64]).is_err(),
        "a loop that hangs has told that it works"
    );
    manager
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, &full).unwrap();
    answer.take().unwrap().write_all(&full).unwrap();
    assert_eq!(heard(&manager), "WATCHDOG=1");
    governor.signal(Signal::TERM);
    // It works until then, and says so.
    let heard: Vec<_> = (0..1000)
        .map(|_| heard(&manager))
        .take_while(|said| said != "STOPPING=1")
        .collect();
    assert!(heard.len() < 1000, "waited in vain for its end: {heard:?}");
    assert_eq!(governor.code(), Some(0));
}

#[test]
fn what_the_killed_one_found_is_what_the_next_one_puts_back() {
    let kernel = Kernel::new(CORES);
    governor(&kernel).abandon();
    let mut second = governor(&kernel);
    second.signal(Signal::TERM);
    assert_eq!(second.code(), Some(0));
    assert!(all_as_found(&kernel));
}

#[test]
#[cfg_attr(
    not(debug_assertions),
    ignore = "sums that are too large panic in debug builds only"
)]
fn a_panic_in_the_loop_puts_back_what_was_found() {
    let kernel = Kernel::new(2);
    let mut config = kernel.config("{ performance: {} }");
    // The end of the next tick cannot be told.
    config.tick = Duration::from_nanos(u64::MAX);
    let governor = Governor::start(config, &kernel.root()).unwrap();
    assert_eq!(kernel.speeds().len(), 2);
    assert_eq!(kernel.read(0, "scaling_governor"), "userspace");
    let (ended, end) = std::sync::mpsc::channel();
    let running = Running::start(governor, move || ended.send(()).unwrap()).unwrap();
    end.recv().unwrap();
    let error = running.stop().unwrap_err().to_string();
    assert_eq!(error, "the loop has panicked");
    assert!(kernel.is_as_found(0) && kernel.is_as_found(1));
}

#[test]
fn whoever_has_started_it_finds_the_first_decision_made() {
    let kernel = Kernel::new(2);
    let mut config = kernel.config("{ performance: {} }");
    config.tick = Duration::from_secs(60);
    let governor = Governor::start(config, &kernel.root()).unwrap();
    let book = governor.book();
    assert!(book.lock().ticked.is_none());
    let running = Running::start(governor, || ()).unwrap();
    assert!(book.lock().ticked.is_some());
    running.stop().unwrap();
}

#[test]
fn a_log_that_nobody_reads_any_more_does_not_keep_cores() {
    let kernel = Kernel::new(2);
    let mut governor = governor_with(&kernel, Stdio::piped(), "");
    drop(governor.0.stderr.take());
    wait_for("idle cores", || all_idle(&kernel));
    kernel.write(0, "scaling_governor", "performance");
    wait_for("a line of the log", || {
        page(&kernel, "/ready").contains("cpu0 is left alone")
    });
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(0));
    assert!(kernel.is_as_found(0) && kernel.is_as_found(1));
}

#[test]
fn an_end_that_leaves_something_is_a_failure_and_restore_goes_on_there() {
    let kernel = Kernel::new(3);
    let mut governor = governor(&kernel);
    wait_for("idle cores", || all_idle(&kernel));
    let attribute = kernel.policy(1).join("scaling_governor");
    kernel.read_only(1, "scaling_governor");
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(1));
    assert!(kernel.is_as_found(0) && kernel.is_as_found(2));
    let (code, text) = restore(&kernel);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("policy1/scaling_governor"), "{text}");
    std::fs::remove_dir(attribute).unwrap();
    kernel.write(1, "scaling_governor", "userspace");
    assert_eq!(restore(&kernel).0, Some(0));
    assert!(kernel.is_as_found(1));
}

#[test]
fn a_full_state_directory_does_not_keep_cores() {
    let kernel = Kernel::new(3);
    governor(&kernel).abandon();
    // Where the next record would be written.
    std::fs::create_dir(kernel.state().join("found.json.partial")).unwrap();
    let (code, text) = restore(&kernel);
    assert_eq!(code, Some(0), "{text}");
    assert!((0..3).all(|policy| kernel.is_as_found(policy)));
}

#[test]
fn connections_that_say_nothing_keep_no_files_from_the_cores() {
    let kernel = Kernel::new(4);
    let mut governor = governor_with(&kernel, Stdio::piped(), "ulimit -n 44;");
    let address = address(&kernel);
    let idle: Vec<TcpStream> = (0..32)
        .map(|_| TcpStream::connect(&address).unwrap())
        .collect();
    // Another's value is seen, and met after a rest.
    kernel.write(0, "scaling_governor", "performance");
    wait_for("the core to be ours", || {
        kernel.read(0, "scaling_governor") == "userspace"
    });
    assert!(page(&kernel, "/ready").contains("HTTP/1.1"));
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(0));
    assert!((0..4).all(|policy| kernel.is_as_found(policy)));
    let mut text = String::new();
    let mut stderr = governor.0.stderr.take().unwrap();
    stderr.read_to_string(&mut text).unwrap();
    assert!(text.contains("another program"), "{text}");
    assert!(!text.contains("cannot be looked at"), "{text}");
    drop(idle);
}

#[test]
fn restore_finds_the_place_in_the_configuration_and_creates_none() {
    let kernel = Kernel::new(1);
    governor(&kernel).kill();
    let wrong = kernel.path("wrong");
    let (code, text) = output(&kernel, &["restore", "--state", wrong.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("wrong: No such file"), "{text}");
    assert!(!wrong.exists());
    std::fs::create_dir(&wrong).unwrap();
    let (code, text) = output(&kernel, &["restore", "--state", wrong.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{text}");
    assert!(std::fs::read_dir(&wrong).unwrap().next().is_none());
    let config = kernel.path("g.yaml");
    let (code, text) = output(&kernel, &["restore", "--config", config.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    assert!(kernel.is_as_found(0));
}

#[test]
fn cores_that_are_found_limited_are_told() {
    let kernel = Kernel::new(1);
    kernel.write(0, "cpuinfo_max_freq", "3000000");
    let mut governor = governor_with(&kernel, Stdio::piped(), "");
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(0));
    let mut text = String::new();
    let mut stderr = governor.0.stderr.take().unwrap();
    stderr.read_to_string(&mut text).unwrap();
    assert!(
        text.contains("found limited") && text.contains("limit=2600000"),
        "{text}"
    );
}

#[test]
fn bad_usage_and_bad_configuration_end_with_64_and_change_nothing() {
    let kernel = Kernel::new(1);
    assert_eq!(output(&kernel, &["run"]).0, Some(64));
    assert_eq!(output(&kernel, &["--version"]).0, Some(0));
    let missing = output(&kernel, &["run", "--config", "/nowhere/g.yaml"]);
    assert_eq!(missing.0, Some(64));
    assert!(missing.1.contains("/nowhere/g.yaml: cannot read"));
    let config = kernel.config_file("{ three_state: { hot: 2.1 GHz } }");
    let config = config.to_str().unwrap();
    // The file is good by itself.
    assert_eq!(
        output(&kernel, &["run", "--check", "--config", config]).0,
        Some(0)
    );
    let (code, text) = output(&kernel, &["run", "--config", config]);
    assert_eq!(code, Some(64), "{text}");
    assert!(
        text.contains("g.yaml:1: policy.three_state.hot: cpu0 has no 2.1 GHz; it has 1 GHz, 1.6"),
        "{text}"
    );
    assert!(kernel.is_as_found(0) && !kernel.ring().exists());
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_is_changed() {
    let kernel = Kernel::new(1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = kernel.config_file("{ three_state: {} }");
    let text = std::fs::read_to_string(&config).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    std::fs::write(&config, text.replace("127.0.0.1:0", &address)).unwrap();
    let (code, text) = output(&kernel, &["run", "--config", config.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("admin.listen") && text.contains(&address),
        "{text}"
    );
    assert!(kernel.is_as_found(0));
}

#[test]
fn the_second_governor_of_a_node_is_told_who_the_first_is() {
    let kernel = Kernel::new(CORES);
    let first = governor(&kernel);
    let config = kernel.config_file("{ three_state: {} }");
    let (code, text) = output(&kernel, &["run", "--config", config.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(
        text.contains(&format!("held by process {}", first.0.id())),
        "{text}"
    );
    wait_for("idle cores", || all_idle(&kernel));
}

/// Where the governor's pages are.
fn address(kernel: &Kernel) -> String {
    let ports = std::fs::read_to_string(kernel.path("ports")).unwrap();
    let ports: serde_json::Value = serde_json::from_str(&ports).unwrap();
    ports["admin"].as_str().unwrap().to_owned()
}

/// The body of a page of the governor's.
fn page(kernel: &Kernel, path: &str) -> String {
    get(&address(kernel), path)
}

/// The whole answer.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_pages_show_what_the_cores_do() {
    let kernel = Kernel::new(CORES);
    let _governor = governor(&kernel);
    let _producer = producing(&kernel);
    wait_for("an event", || {
        !page(&kernel, "/metrics").contains("weir_governor_events_total 0.0\n")
    });
    assert!(page(&kernel, "/ready").ends_with("ready\n"));
    let state = page(&kernel, "/state");
    let state = state.split("\r\n\r\n").nth(1).unwrap();
    let view: weir_governor::admin::View = serde_json::from_str(state).unwrap();
    assert_eq!(view.cores.len(), CORES);
    assert!(
        view.cores
            .iter()
            .all(|core| core.governed && core.mhz.is_some())
    );
    let admin = address(&kernel);
    let (code, text) = output(&kernel, &["top", "--once", "--admin", &admin]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.lines().count(), 3 + CORES, "{text}");
    assert!(page(&kernel, "/nothing").starts_with("HTTP/1.1 404"));
    kernel.write(0, "scaling_governor", "performance");
    wait_for("it to be noticed", || {
        page(&kernel, "/ready").contains("cpu0 is left alone")
    });
}

/// A sequence of numbers, the same for the same seed (Knuth's MMIX generator).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Each takes some seconds; `cargo xtask test --long` has a hundred.
#[test]
fn producers_and_governors_are_killed_at_random_and_no_core_is_left_fast() {
    let runs = std::env::var("WEIR_RUNS").ok();
    let runs: u64 = runs.and_then(|runs| runs.parse().ok()).unwrap_or(3);
    for run in 0..runs {
        let mut numbers = Numbers(run);
        let kernel = Kernel::new(CORES);
        let mut governing = Some(governor(&kernel));
        let mut producers: Vec<Process> = (0..3).map(|_| producing(&kernel)).collect();
        let is_fast = |speed: &String| speed.starts_with('2');
        wait_or_tell(
            "a fast core",
            || kernel.speeds().iter().any(is_fast),
            || page(&kernel, "/metrics"),
        );
        for _ in 0..6 {
            std::thread::sleep(Duration::from_millis(numbers.below(150)));
            match numbers.below(4) {
                0 => {
                    let killed = governing.take();
                    killed.into_iter().for_each(Process::kill);
                    governing = Some(governor(&kernel));
                }
                1 => {
                    if let Some(governor) = &mut governing {
                        governor.signal(Signal::TERM);
                        assert_eq!(governor.code(), Some(0));
                        assert!(all_as_found(&kernel), "run {run}");
                    }
                    governing = Some(self::governor(&kernel));
                }
                _ => {
                    let index = numbers.below(3) as usize;
                    producers.swap_remove(index).kill();
                    producers.push(producing(&kernel));
                }
            }
        }
        producers.into_iter().for_each(Process::kill);
        wait_for("idle cores", || all_idle(&kernel));
        if let Some(governor) = governing {
            governor.kill();
        }
        assert_eq!(restore(&kernel).0, Some(0));
        assert!(all_as_found(&kernel), "run {run}");
        eprintln!("run {run}: no core was left fast");
    }
}
