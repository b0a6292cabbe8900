// SPDX-License-Identifier: Apache-2.0
//! What is printed at the end, as Markdown.

use crate::faults::run::Played;

const HEAD: [&str; 11] = [
    "fault",
    "important ok %",
    "low ok %",
    "sent",
    "failed",
    "at the killed",
    "refused",
    "late",
    "doubled",
    "in flight after",
    "by table %",
];

/// The page of results: where they come from, then the table.
#[must_use]
pub fn page(all: &[Played]) -> String {
    format!(
        "# Results\n\nWritten by `cargo xtask faults --update`: {} faults at full length in one run, release \
         builds, on {}. Hosts EMULATE their work. What is checked and what the columns mean is in [README.md](README.md).\n\n{}",
        all.len(),
        weir_stage::machine::describe(),
        markdown(all)
    )
}

/// A row a fault, then what each expects, and what is to be said of it.
#[must_use]
pub fn markdown(all: &[Played]) -> String {
    let mut text = format!(
        "| {} | measured | verdict |\n|---|{}---|---|\n",
        HEAD.join(" | "),
        "--:|".repeat(HEAD.len() - 1)
    );
    for played in all {
        let measured: Vec<_> = played
            .outcome
            .measured
            .iter()
            .map(|figure| format!("{}: {:.1} {}", figure.name, figure.value, figure.unit))
            .collect();
        text += &format!(
            "| {} | {} | {} | {} |\n",
            played.fault,
            figures(played).join(" | "),
            measured.join("; "),
            played.verdict.word()
        );
    }
    text += "\n";
    for played in all {
        text += &format!("- {}: {}.", played.fault, played.expectation);
        if let Some(details) = played.verdict.details() {
            text += &format!(" {}: {details}.", played.verdict.word());
        }
        text += "\n";
    }
    text
}

fn figures(played: &Played) -> Vec<String> {
    let Some(figures) = &played.figures else {
        return vec!["-".to_owned(); HEAD.len() - 1];
    };
    let (important, low) = (&figures.important, &figures.low);
    let counts = [
        important.sent + low.sent,
        figures.failed(),
        important.died + low.died,
        important.refused + low.refused,
        important.late + low.late,
        figures.doubled.len() as u64,
        figures.in_flight.len() as u64,
    ];
    [important.ok(), low.ok()]
        .map(|percent| format!("{percent:.2}"))
        .into_iter()
        .chain(counts.map(|count| count.to_string()))
        .chain([format!("{:.1}", figures.by_table)])
        .collect()
}
