// SPDX-License-Identifier: Apache-2.0
//! What was run, what of it is not real, and how to run it again.

use weir_report::Report;

use crate::demo::comparison;
use crate::demo::kept::Told;
use crate::demo::report::listed;
use crate::demo::report::story::Story;

/// What must not be overlooked.
pub(super) fn note(page: &mut Report, story: &Story<'_>) {
    page.note(if story.run.emulated {
        "EMULATED hosts: a job sleeps for its time instead of computing, so durations, waits and loads are of queues, \
         caches and choices, not of real work. MODELLED: run times, data sizes and priorities of the recorded trace. \
         Envoy, weir-control and every request between them are real."
    } else {
        "Hosts, Envoys, weir-control and the replayer share one machine, so each takes time from the others. The work is \
         real; the feeds and the requests for them are generated."
    });
    let busy: Vec<&str> = story
        .ways
        .iter()
        .filter(|told| comparison::too_busy(told))
        .map(|told| &*told.name)
        .collect();
    if !busy.is_empty() {
        let which = match busy.len() == story.ways.len() {
            true => "every way".to_owned(),
            false => listed(&busy),
        };
        page.note(&format!(
            "TOO BUSY: with {which} the machine's cores had no time left, or the replayer could not keep up. Such figures \
             are of the machine rather than of the way; run it again when nothing else runs."
        ));
    }
}

pub(super) fn add(page: &mut Report, story: &Story<'_>) {
    page.heading("What was run");
    let mut facts = story.run.origin.facts();
    facts.push(("ways".to_owned(), ways(story)));
    page.facts(&facts);
    page.heading("Run it again");
    page.text("In a clone of the repository, on Linux; it installs and builds what it needs:");
    page.command(&story.run.origin.command);
    page.text("The workload is the same each time; times and choices are not, so figures differ by a few per cent from run to run and by more from machine to machine.");
}

/// How busy the machine was with each.
fn ways(story: &Story<'_>) -> String {
    let line = |told: &Told| format!("{}: {}", told.name, told.machine());
    let lines: Vec<String> = story.ways.iter().map(line).collect();
    lines.join("\n")
}
