// SPDX-License-Identifier: Apache-2.0
//! The tables as Markdown, and the page with figures.

use weir_report::Report;
use weir_sim::document001::report::{self, Made, Outcome};

use super::Told;

const SAID: &str = "Durations and waits are of requests that a host answered, as the host saw them, in the document's \
                    time; all-in figures are the callers', back-off and retries included.";

pub(super) fn markdown(header: &str, rounds: &[Told]) -> String {
    let mut text = format!("```text\n{header}\n```\n{SAID}\n\n");
    for told in rounds {
        text += &format!("- {}: {}\n", told.name, machine(told));
    }
    for (made, outcomes) in all(rounds) {
        text += &format!("\n## {made}\n\n{}", report::markdown(&outcomes, made));
    }
    text
}

pub(super) fn report(command: &str, header: &str, rounds: &[Told]) -> Report {
    let mut page = Report::new("Document 001 on real Envoys", SAID);
    page.command(command);
    page.text(header);
    for (made, outcomes) in all(rounds) {
        report::add_figures(&mut page, &outcomes, made);
        report::add_tables(&mut page, &outcomes, made);
    }
    page
}

/// Measured outcomes, and what was simulated of the same requests.
fn all(rounds: &[Told]) -> Vec<(Made, Vec<Outcome>)> {
    let measured = rounds.iter().map(|told| told.measured.clone()).collect();
    let simulated: Vec<_> = rounds
        .iter()
        .filter_map(|told| told.simulated.clone())
        .collect();
    let mut all = vec![(Made::Measured, measured)];
    if !simulated.is_empty() {
        all.push((Made::Simulated, simulated));
    }
    all
}

/// How busy it was with the run.
fn machine(told: &Told) -> String {
    let busy = told
        .busy
        .map(|share| format!("the machine's cores {:.0} % busy, ", 100.0 * share));
    let (busy, lag) = (busy.unwrap_or_default(), told.lag);
    format!("{busy}replayer at most {lag:.0} ms behind for 99 %")
}
