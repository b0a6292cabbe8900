// SPDX-License-Identifier: Apache-2.0
//! The steps of a run: announced as they start, listed with their durations at the end.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

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
}

impl Summary {
    pub(super) fn run(&mut self, step: &'static str, work: impl FnOnce() -> Result<Outcome>) {
        println!("\n== {step}");
        let started = Instant::now();
        let result = work();
        if let Err(error) = &result {
            println!("== {step} failed: {error:#}");
        }
        let took = started.elapsed();
        self.0.push(Line { step, result, took });
    }

    pub(super) fn failed(&self) -> bool {
        self.0.iter().any(|line| line.result.is_err())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Line { step, result, took } in &self.0 {
            let (word, why) = match result {
                Ok(Outcome::Passed) => ("ok", String::new()),
                Ok(Outcome::Skipped(why)) => ("skipped", (*why).into()),
                Err(error) => ("FAILED", format!("{error:#}")),
            };
            let first_line = why.lines().next().unwrap_or_default();
            let line = format!(
                "{step:<14}{word:<8}{:>7.1} s  {first_line}",
                took.as_secs_f32()
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
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
        }
    }

    #[test]
    fn the_summary_lists_every_step_with_its_duration_and_reason() {
        let summary = Summary(vec![
            line("fmt", 1, Ok(Outcome::Passed)),
            line("clippy", 75, Err(anyhow!("cargo ended\nwith details"))),
            line("deny", 0, Ok(Outcome::Skipped("not installed"))),
        ]);
        let expected = "fmt           ok          1.0 s\n\
                        clippy        FAILED     75.0 s  cargo ended\n\
                        deny          skipped     0.0 s  not installed\n";
        assert_eq!(summary.to_string(), expected);
        assert!(summary.failed());
    }
}
