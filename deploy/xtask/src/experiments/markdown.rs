// SPDX-License-Identifier: Apache-2.0
//! The tables as Markdown.

use weir_report::Table;

use crate::experiments::grid::{Grid, varied_policies};
use crate::experiments::outcome::Outcomes;
use crate::experiments::tables::{self, EXPLANATION, Priority};

/// The whole file. The same outcomes give the same text.
pub(super) fn text(grid: &Grid, outcomes: &Outcomes, document001: &str, command: &str) -> String {
    let seeds = grid.seeds();
    let mut text = format!(
        "# Experiments\n\n**SIMULATED**, every figure; {} cells of {seeds}. Made by\n```sh\n{command}\n```\n\n",
        grid.cells.len()
    );
    for line in EXPLANATION {
        text += &format!("- {line}\n");
    }
    for workload in &grid.workloads {
        text += &format!("\n## {}, SIMULATED\n{}\n", workload.title, workload.about);
        for priority in [Priority::Low, Priority::High] {
            text += &format!("\nPriority {}:\n\n", priority.name());
            text += &shown(&tables::compared(workload, outcomes, priority));
        }
        text += "\nBoth priorities:\n\n";
        text += &shown(&tables::fleet(workload, outcomes));
        text += "\nBy callers:\n\n";
        text += &shown(&tables::by_callers(workload, outcomes));
        let troubles = tables::troubles(workload, outcomes);
        if !troubles.rows.is_empty() {
            text += "\nHosts in trouble from the middle on:\n\n";
            text += &shown(&troubles);
        }
        for policy in varied_policies() {
            let sharing = tables::sharing(workload, policy, outcomes);
            if sharing.rows.len() > 1 {
                text += &format!(
                    "\n{}: mean low wait by callers and staleness\n\n",
                    policy.name
                );
                text += &shown(&sharing);
            }
        }
    }
    text += &format!(
        "\n## Beside what document 001 published\n{}\n",
        document001.trim_end()
    );
    text
}

fn shown(table: &Table) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!(
        "|---{}\n",
        "|---:".repeat(table.header.len().saturating_sub(1)) + "|"
    );
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    line(&table.header) + &rule + &rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_rule_of_as_many_columns_and_no_stray_bars() {
        let own = |cells: &[&str]| {
            cells
                .iter()
                .map(|cell| (*cell).to_owned())
                .collect::<Vec<_>>()
        };
        let table = Table {
            header: own(&["a", "b"]),
            rows: vec![own(&["x|y", "1"])],
        };
        assert_eq!(shown(&table), "| a | b |\n|---|---:|\n| x\\|y | 1 |\n");
    }
}
