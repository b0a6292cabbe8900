// SPDX-License-Identifier: Apache-2.0
//! The steps of a run: announced as they start, listed with their durations at the end.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// How a step ended that did not fail.
pub(super) enum Outcome {
    Passed,
    Skipped(&'static str),
}

#[derive(Default)]
pub(super) struct Summary(Vec<Line>);

struct Line {
    step: &'static str,
    result: Result<Outcome>,
    took: Duration,
    /// Processor time of what it ran.
    cpu: Duration,
}

impl Summary {
    pub(super) fn run(&mut self, step: &'static str, work: impl FnOnce() -> Result<Outcome>) {
        println!("\n== {step}");
        let (started, before) = (Instant::now(), children());
        let result = work();
        if let Err(error) = &result {
            println!("== {step} failed: {error:#}");
        }
        self.0.push(Line {
            step,
            result,
            took: started.elapsed(),
            cpu: children().saturating_sub(before),
        });
    }

    pub(super) fn failed(&self) -> bool {
        self.0.iter().any(|line| line.result.is_err())
    }
}

/// Processor time of all processes that were waited for; that of one that was left running is not in it.
fn children() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return Duration::ZERO;
    };
    let times = [usage.user_time(), usage.system_time()];
    times
        .map(|time| Duration::from_micros(time.num_microseconds().max(0) as u64))
        .iter()
        .sum()
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<22}{:>9}{:>11}", "step", "clock", "CPU")?;
        for line in &self.0 {
            let Line {
                step,
                result,
                took,
                cpu,
            } = line;
            let (word, why) = match result {
                Ok(Outcome::Passed) => ("ok", String::new()),
                Ok(Outcome::Skipped(why)) => ("skipped", (*why).into()),
                Err(error) => ("FAILED", format!("{error:#}")),
            };
            let first_line = why.lines().next().unwrap_or_default();
            let line = format!(
                "{step:<14}{word:<8}{:>7.1} s{:>9.1} s  {first_line}",
                took.as_secs_f32(),
                cpu.as_secs_f32()
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        let all = |of: fn(&Line) -> Duration| {
            self.0.iter().map(of).sum::<Duration>().as_secs_f32() / 60.0
        };
        let (took, cpu) = (all(|line| line.took), all(|line| line.cpu));
        writeln!(f, "{:<22}{took:>7.1} min{cpu:>7.1} min", "all")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    fn line(step: &'static str, seconds: u64, result: Result<Outcome>) -> Line {
        Line {
            step,
            result,
            took: Duration::from_secs(seconds),
            cpu: Duration::from_secs(2 * seconds),
        }
    }

    #[test]
    fn the_summary_lists_every_step_with_its_duration_and_reason() {
        let summary = Summary(vec![
            line("fmt", 1, Ok(Outcome::Passed)),
            line("clippy", 75, Err(anyhow!("cargo ended\nwith details"))),
            line("deny", 0, Ok(Outcome::Skipped("not installed"))),
        ]);
        let expected = "\
step                      clock        CPU
fmt           ok          1.0 s      2.0 s
clippy        FAILED     75.0 s    150.0 s  cargo ended
deny          skipped     0.0 s      0.0 s  not installed
all                       1.3 min    2.5 min
";
        assert_eq!(summary.to_string(), expected);
        assert!(summary.failed());
    }
}
