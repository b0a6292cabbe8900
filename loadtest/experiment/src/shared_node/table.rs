// SPDX-License-Identifier: Apache-2.0
//! The figures as rows of cells.

use clap::ValueEnum;
use weir_report::Table;

use crate::shared_node::figures::Figures;
use crate::shared_node::reaction::Reaction;
use crate::shared_node::rounds::Round;
use crate::shared_node::way::Way;
use crate::variant::Variant;

const HEADER: [&str; 14] = [
    "way",
    "sent",
    "shed",
    "shed, high",
    "shed, low",
    "failed",
    "good answers / s",
    "p95 wait / ms",
    "p95 in all / ms",
    "batch CPU / s a s",
    "mesh CPU / s a s",
    "moves",
    "second core after / ms",
    "both cores / % of the overload",
];

/// A way, over all its rounds.
#[must_use]
pub fn of(rounds: &[Round], way: Way) -> Option<Figures> {
    let ours = || rounds.iter().filter(|round| round.way == way);
    ours().next()?;
    Some(Figures::sum(ours().map(|round| &round.requests)))
}

/// How soon and how long a way gave the service both cores, over all its rounds.
#[must_use]
pub fn reaction(rounds: &[Round], way: Way) -> Option<Reaction> {
    let ours = || rounds.iter().filter(|round| round.way == way);
    ours().next()?;
    Some(Reaction::sum(ours().map(|round| &round.reaction)))
}

/// A row for each way that was run.
#[must_use]
pub fn table(rounds: &[Round]) -> Table {
    let rows = Way::value_variants().iter().filter_map(|way| {
        let figures = of(rounds, *way)?;
        Some(row(rounds, *way, &figures, &reaction(rounds, *way)?))
    });
    Table::new(HEADER, rows)
}

fn row(rounds: &[Round], way: Way, figures: &Figures, reaction: &Reaction) -> Vec<String> {
    let ours = || rounds.iter().filter(|round| round.way == way);
    let seconds: f64 = ours().map(|round| round.seconds).sum();
    let a_second = |of: fn(&Round) -> f64| ours().map(of).sum::<f64>() / seconds;
    let all = figures.all();
    vec![
        way.name(),
        all.sent.to_string(),
        format!(
            "{} ({:.1} %)",
            all.shed,
            100.0 * all.shed as f64 / all.sent.max(1) as f64
        ),
        figures.high.shed.to_string(),
        figures.low.shed.to_string(),
        all.failed.to_string(),
        format!("{:.1}", all.ok as f64 / seconds),
        format!("{:.0}", figures.wait_p95()),
        format!("{:.0}", figures.duration_p95()),
        format!("{:.2}", a_second(|round| round.batch_cpu_s)),
        format!("{:.2}", a_second(|round| round.mesh_cpu_s)),
        ours().map(|round| round.moves).sum::<u64>().to_string(),
        format!("{:.0}", reaction.after_ms()),
        format!("{:.0}", 100.0 * reaction.share()),
    ]
}
