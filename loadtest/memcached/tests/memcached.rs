// SPDX-License-Identifier: Apache-2.0
//! The program against a real memcached, a new one for each test.
//!
//! Where none can be had (`WEIR_MEMCACHED` is not set) the tests are reported as ignored.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitCode, Output};

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Trial};
use serde_json::Value;
use tempfile::TempDir;
use weir_memcached_load::server::{Program, Server};
use weir_needs::{Need, skip_test};

type Scenario = (&'static str, fn(&Stage) -> Result<()>);

const SCENARIOS: &[Scenario] = &[
    (
        "every_key_that_was_loaded_is_found_with_its_value",
        every_key_that_was_loaded_is_found_with_its_value,
    ),
    (
        "keys_that_were_not_loaded_are_counted_as_missing",
        keys_that_were_not_loaded_are_counted_as_missing,
    ),
    (
        "values_of_another_load_end_the_run_with_the_reason",
        values_of_another_load_end_the_run_with_the_reason,
    ),
    (
        "a_memcached_that_is_killed_ends_the_run_and_what_was_seen_is_told",
        a_memcached_that_is_killed_ends_the_run_and_what_was_seen_is_told,
    ),
    (
        "values_of_a_megabyte_come_in_parts_and_are_right",
        values_of_a_megabyte_come_in_parts_and_are_right,
    ),
    (
        "latencies_are_shown_while_the_load_runs",
        latencies_are_shown_while_the_load_runs,
    ),
    (
        "one_after_another_in_the_same_folder_says_its_own_port",
        one_after_another_in_the_same_folder_says_its_own_port,
    ),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Loads side by side would be slower than they are told to be.
    arguments.test_threads = Some(1);
    let program = match Program::find() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let trial = |(name, run): &Scenario| {
        let (program, run) = (program.clone(), *run);
        let absent = program.is_none();
        if absent {
            skip_test(name, Need::Provided("WEIR_MEMCACHED"), "it is not set");
        }
        Trial::test(*name, move || {
            let program = program.ok_or("there is no memcached")?;
            Stage::new(&program)
                .and_then(|stage| run(&stage))
                .map_err(|error| format!("{error:#}").into())
        })
        .with_ignored_flag(absent)
    };
    let trials = SCENARIOS.iter().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

struct Stage {
    program: Program,
    server: Server,
    folder: TempDir,
}

/// A run's end, and its lines of JSON.
struct Run {
    output: Output,
    lines: Vec<Value>,
}

impl Stage {
    fn new(program: &Program) -> Result<Self> {
        let folder = TempDir::new()?;
        let server = program.start(2, folder.path())?;
        Ok(Self {
            program: program.clone(),
            server,
            folder,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-memcached-load"));
        command
            .arg(self.server.address())
            .arg("--json")
            .arg(self.folder.path().join("lines"))
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<Run> {
        let output = self.command(arguments).output()?;
        let lines = self.lines()?;
        Ok(Run { output, lines })
    }

    fn lines(&self) -> Result<Vec<Value>> {
        fs::read_to_string(self.folder.path().join("lines"))?
            .lines()
            .map(|line| Ok(serde_json::from_str(line)?))
            .collect()
    }
}

impl Run {
    fn error(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    fn succeeded(&self) -> Result<&Value> {
        ensure!(self.output.status.success(), "{}", self.error());
        self.total()
    }

    fn total(&self) -> Result<&Value> {
        self.lines
            .last()
            .and_then(|line| line.get("total"))
            .context("the last line is of the run")
    }
}

fn count(figures: &Value, name: &str) -> Result<u64> {
    figures[name]
        .as_u64()
        .with_context(|| format!("{figures} has no {name}"))
}

fn every_key_that_was_loaded_is_found_with_its_value(stage: &Stage) -> Result<()> {
    let run = stage.run(&[
        "--keys=5000",
        "--value-bytes=300",
        "--keys-per-get=100",
        "--min=100",
        "--max=400",
        "--interval=500ms",
        "--duration=1500ms",
        "--connections=4",
        "--patience=60s",
    ])?;
    let total = run.succeeded()?;
    for name in ["errors", "dropped", "misses"] {
        ensure!(count(total, name)? == 0, "{name}: {total}");
    }
    ensure!(count(total, "due")? > 0 && total["due"] == total["answered"]);
    ensure!(count(total, "p50_us")? <= count(total, "max_us")?);
    ensure!(run.lines.len() == 5, "{:?}", run.lines);
    let due: Result<Vec<u64>> = run.lines[1..4]
        .iter()
        .map(|line| count(&line["interval"], "due"))
        .collect();
    ensure!(due?.iter().sum::<u64>() == count(total, "due")?);
    // The load is the seed's: another run asks as often.
    let again = stage.run(&[
        "--no-load",
        "--keys=5000",
        "--value-bytes=300",
        "--min=100",
        "--max=400",
        "--interval=500ms",
        "--duration=1500ms",
        "--patience=60s",
    ])?;
    let again = again.succeeded()?;
    ensure!(again["due"] == total["due"], "{again} {total}");
    ensure!(count(again, "misses")? == 0);
    Ok(())
}

fn keys_that_were_not_loaded_are_counted_as_missing(stage: &Stage) -> Result<()> {
    let loaded = stage.command(&["--load-only", "--keys=500"]).output()?;
    ensure!(loaded.status.success());
    let run = stage.run(&[
        "--no-load",
        "--keys=1000",
        "--keys-per-get=10",
        "--qps=500",
        "--duration=1s",
        "--interval=1s",
        "--patience=60s",
    ])?;
    let total = run.succeeded()?;
    let (misses, asked) = (count(total, "misses")?, 10 * count(total, "due")?);
    // About half; five deviations are a tenth of that.
    ensure!(
        (asked * 45 / 100..asked * 55 / 100).contains(&misses),
        "{total}"
    );
    ensure!(total["answered"] == total["due"]);
    let said = String::from_utf8_lossy(&run.output.stdout).into_owned();
    ensure!(said.contains("keys were not there"), "{said}");
    Ok(())
}

fn values_of_another_load_end_the_run_with_the_reason(stage: &Stage) -> Result<()> {
    let loaded = stage
        .command(&["--load-only", "--value-bytes=9"])
        .output()?;
    ensure!(loaded.status.success());
    let run = stage.run(&["--no-load", "--value-bytes=10", "--qps=500"])?;
    ensure!(!run.output.status.success());
    ensure!(
        run.error().contains("9 bytes instead of 10"),
        "{}",
        run.error()
    );
    Ok(())
}

fn a_memcached_that_is_killed_ends_the_run_and_what_was_seen_is_told(stage: &Stage) -> Result<()> {
    // Without it, the run would last for ten minutes.
    let mut load = stage
        .command(&["--qps=500", "--interval=100ms", "--duration=10m"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    // One interval was told.
    while stage.lines().map_or(0, |lines| lines.len()) < 2 {
        ensure!(std::time::Instant::now() < deadline, "no interval was told");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let killed = Command::new("kill")
        .args(["-KILL", &stage.server.pid().to_string()])
        .status()?;
    ensure!(killed.success());
    let said = {
        let mut said = String::new();
        let stderr = load.stderr.as_mut().context("its errors are read")?;
        std::io::Read::read_to_string(stderr, &mut said)?;
        said
    };
    ensure!(!load.wait()?.success());
    ensure!(said.contains("has closed the connection"), "{said}");
    let lines = stage.lines()?;
    let total = &lines.last().context("there are lines")?["total"];
    ensure!(count(total, "answered")? > 0, "{total}");
    Ok(())
}

fn values_of_a_megabyte_come_in_parts_and_are_right(stage: &Stage) -> Result<()> {
    let run = stage.run(&[
        "--keys=3",
        "--value-bytes=1000000",
        "--keys-per-get=2",
        "--qps=20",
        "--duration=1s",
        "--interval=1s",
        "--patience=60s",
    ])?;
    let total = run.succeeded()?;
    ensure!(total["answered"] == total["due"], "{total}");
    ensure!(count(total, "misses")? == 0, "{total}");
    Ok(())
}

fn latencies_are_shown_while_the_load_runs(stage: &Stage) -> Result<()> {
    let mut load = stage
        .command(&["--qps=500", "--duration=10m", "--metrics=127.0.0.1:0"])
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let shown = watch_page(&mut load);
    load.kill()?;
    load.wait()?;
    shown
}

/// Waits until the page that the load names counts answers.
fn watch_page(load: &mut std::process::Child) -> Result<()> {
    let stdout = load.stdout.take().context("its output is read")?;
    let mut said = BufReader::new(stdout).lines();
    let url = said.find_map(|line| {
        let line = line.ok()?;
        let (_, rest) = line.split_once("http://")?;
        Some(rest.split_once('/')?.0.to_owned())
    });
    let address = url.context("it does not say where")?;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let mut stream = std::net::TcpStream::connect(&address)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        let count = page.lines().find_map(|line| {
            line.strip_prefix("weir_memcached_latency_seconds_count ")?
                .parse::<u64>()
                .ok()
        });
        if count.with_context(|| format!("no count in {page}"))? > 10 {
            return Ok(());
        }
        ensure!(
            std::time::Instant::now() < deadline,
            "waited in vain for more than ten answers: {page}"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn one_after_another_in_the_same_folder_says_its_own_port(stage: &Stage) -> Result<()> {
    // The first one runs on, so that no other can have its port.
    let next = stage.program.start(1, stage.folder.path())?;
    ensure!(
        next.address() != stage.server.address(),
        "both say {}",
        next.address()
    );
    Ok(())
}
