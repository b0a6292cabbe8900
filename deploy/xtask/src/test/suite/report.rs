// SPDX-License-Identifier: Apache-2.0
//! What the test programs said: who passed, failed, and tested nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::ErrorKind;

use anyhow::{Context, Result};

use crate::test::suite::pool::{Done, End};

/// The need of those that their source tells to leave out.
const IGNORED: &str = "ignored";

/// Of what a program said before it failed: test harnesses tell the reasons at their end.
const LAST_LINES: usize = 40;

/// Of all test programs so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: usize,
    /// With the program before the name of the test.
    failed: Vec<String>,
    skipped: BTreeSet<Skip>,
    /// Programs of which something failed, and the last lines of each.
    last_words: Vec<(String, String)>,
}

/// A test that tested nothing. Sorted by what it needed.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Skip {
    need: String,
    program: String,
    test: String,
}

/// What one program said of its tests.
#[derive(Debug, Default)]
struct Said<'a> {
    passed: BTreeSet<&'a str>,
    failed: Vec<&'a str>,
    ignored: Vec<&'a str>,
    /// It came to its end.
    ended: bool,
}

impl Report {
    /// Adds a program; returns how it went, for the line that tells it.
    pub(super) fn add(&mut self, done: &Done) -> Result<String> {
        let log = fs::read(&done.log).with_context(|| done.log.display().to_string())?;
        let record = match fs::read_to_string(&done.skips) {
            Ok(record) => record,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context(done.skips.display().to_string()),
        };
        Ok(self.count(
            &done.name,
            &done.end,
            &String::from_utf8_lossy(&log),
            &record,
        ))
    }

    fn count(&mut self, program: &str, end: &End, log: &str, record: &str) -> String {
        let said = said(log);
        let mut skipped: BTreeMap<&str, &str> =
            said.ignored.iter().map(|test| (*test, IGNORED)).collect();
        // The record knows more than the harness, which only knows that it was told to leave a test out. Of tests
        // that were not asked for it speaks, too; with one thread for all of them the harness names none.
        let is_asked =
            |test: &str| test == "main" || said.passed.contains(test) || skipped.contains_key(test);
        let recorded: Vec<(&str, &str)> = record
            .lines()
            .filter_map(|line| {
                let (test, rest) = line.split_once('\t')?;
                is_asked(test).then_some((test, rest.split_once('\t')?.0))
            })
            .collect();
        skipped.extend(recorded);
        for test in &said.failed {
            skipped.remove(test);
        }
        let silent = skipped
            .keys()
            .filter(|test| said.passed.contains(*test))
            .count();
        let passed = said.passed.len() - silent;
        let mut failed: Vec<String> = said
            .failed
            .iter()
            .map(|test| format!("{program}: {test}"))
            .collect();
        match end {
            End::Overdue(limit) => {
                failed.push(format!("{program}: killed after {} s", limit.as_secs()));
            }
            End::Exited(status) if failed.is_empty() && !(status.success() && said.ended) => {
                failed.push(format!(
                    "{program}: ended with {status} before its tests did"
                ));
            }
            End::Exited(_) => {}
        }
        if !failed.is_empty() {
            self.last_words.push((program.to_owned(), last_lines(log)));
        }
        let words = [
            (passed, "passed"),
            (failed.len(), "FAILED"),
            (skipped.len(), "skipped"),
        ];
        let words = words.iter().filter(|(number, _)| *number > 0);
        let words: Vec<String> = words
            .map(|(number, word)| format!("{number} {word}"))
            .collect();
        self.passed += passed;
        self.failed.extend(failed);
        self.skipped
            .extend(skipped.into_iter().map(|(test, need)| Skip {
                need: need.to_owned(),
                program: program.to_owned(),
                test: test.to_owned(),
            }));
        words.join(", ")
    }

    pub(super) fn failed(&self) -> &[String] {
        &self.failed
    }

    /// How many tests were skipped for each need.
    pub(super) fn skipped(&self) -> BTreeMap<&str, usize> {
        let mut needs = BTreeMap::new();
        for skip in &self.skipped {
            *needs.entry(skip.need.as_str()).or_default() += 1;
        }
        needs
    }
}

/// Skipped tests by name, why others failed, then how many there are of all.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (need, number) in self.skipped() {
            writeln!(f, "skipped, {number} that need {need}:")?;
            for skip in self.skipped.iter().filter(|skip| skip.need == need) {
                writeln!(f, "  {}: {}", skip.program, skip.test)?;
            }
        }
        for (program, words) in &self.last_words {
            write!(f, "failed, the last lines of {program}:\n{words}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed.len())?;
        if !self.skipped.is_empty() {
            write!(f, ", {} skipped", self.skipped.len())?;
        }
        Ok(())
    }
}

/// Whoever reads the end of a long run alone finds there why it failed.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let first = lines.len().saturating_sub(LAST_LINES);
    let last = lines.get(first..).unwrap_or_default();
    last.iter().map(|line| format!("  {line}\n")).collect()
}

/// Reads `test NAME ... ok` and `test result: …`, as libtest and what plays libtest write them. With one thread they
/// write the name before the test runs: what the test says comes between, and the result has a line of its own.
fn said(log: &str) -> Said<'_> {
    let mut said = Said::default();
    let mut running = None;
    for line in log.lines() {
        if line.starts_with("test result: ") {
            said.ended = true;
            continue;
        }
        let named = line
            .strip_prefix("test ")
            .and_then(|line| line.split_once(" ... "));
        let (name, result) = match (named, running) {
            // Names may be padded to one width; `- should panic` and the like follow a name.
            (Some((name, result)), _) => {
                (name.split(" - ").next().unwrap_or(name).trim_end(), result)
            }
            (None, Some(name)) if ["ok", "FAILED"].contains(&line) => (name, line),
            _ => continue,
        };
        running = None;
        match result.split([',', ' ']).next() {
            Some("ok") => _ = said.passed.insert(name),
            Some("FAILED") => said.failed.push(name),
            Some("ignored") => said.ignored.push(name),
            _ => running = Some(name),
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    #[test]
    fn a_test_that_tested_nothing_is_not_counted_as_passed() {
        let mut report = Report::default();
        let log = "running 4 tests\ntest a::b ... ok\ntest a::c   ... ok\ntest d - should panic ... ok\n\
                   test e ... ignored, needs a mesh\n\
                   test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out";
        let record = "a::c\tcgroups\tread-only\na::c\tcgroups\ttwice\nz\troot\tnot asked for\n";
        assert_eq!(
            report.count("x y", &exited(0), log, record),
            "2 passed, 2 skipped"
        );
        assert_eq!(
            report.to_string(),
            "skipped, 1 that need cgroups:\n  x y: a::c\nskipped, 1 that need ignored:\n  x y: e\n\
             2 passed, 0 failed, 2 skipped"
        );
        assert_eq!(
            report.skipped(),
            BTreeMap::from([("cgroups", 1), ("ignored", 1)])
        );
    }

    #[test]
    fn a_test_that_failed_was_not_skipped() {
        let mut report = Report::default();
        let log = "test a ... FAILED\ntest result: FAILED. 0 passed; 1 failed";
        assert_eq!(
            report.count("x y", &exited(101), log, "a\troot\twhy\n"),
            "1 FAILED"
        );
        assert_eq!(report.failed(), ["x y: a"]);
    }

    #[test]
    fn what_a_test_says_before_its_result_hides_neither_result_nor_skip() {
        let mut report = Report::default();
        let log = "test a ... SKIPPED: a: needs root: nobody\nok\ntest b ... logs are in x\nFAILED\n\
                   test c ... hm ... what\n\nok\ntest result: FAILED. 2 passed; 1 failed";
        let said = report.count("x y", &exited(101), log, "a\troot\tnobody\n");
        assert_eq!(said, "1 passed, 1 FAILED, 1 skipped");
        assert_eq!(report.failed(), ["x y: b"]);
    }

    #[test]
    fn why_something_failed_stands_at_the_end() {
        let mut report = Report::default();
        let mut log = "test a ... FAILED\n".repeat(50);
        log.push_str("assertion failed: four is not five\ntest result: FAILED. 0 passed; 1 failed");
        report.count("x y", &exited(101), &log, "");
        report.count("good", &exited(0), "test b ... ok\ntest result: ok.", "");
        let page = report.to_string();
        let tail: Vec<&str> = page.lines().rev().take(3).collect();
        assert_eq!(
            tail.last(),
            Some(&"  assertion failed: four is not five"),
            "{page}"
        );
        assert_eq!(page.lines().count(), 1 + LAST_LINES + 1, "{page}");
        assert!(!page.contains("lines of good"), "{page}");
    }

    #[test]
    fn a_program_that_did_not_come_to_its_end_failed_whatever_its_tests_said() {
        let mut report = Report::default();
        let log = "test a ... ok\n";
        report.count("crashed", &End::Exited(ExitStatus::from_raw(6)), log, "");
        report.count("silent", &exited(0), log, "");
        report.count("hung", &End::Overdue(Duration::from_secs(900)), log, "");
        assert_eq!(report.failed().len(), 3, "{report:?}");
        assert!(report.failed()[2].contains("hung: killed after 900 s"));
        assert_eq!(report.passed, 3);
    }

    fn exited(code: i32) -> End {
        End::Exited(ExitStatus::from_raw(code << 8))
    }
}
