// SPDX-License-Identifier: Apache-2.0
//! The sections as files.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use weir_report::Report;
use weir_stage::machine;

use crate::section::Section;

const TITLE: &str = "What Weir costs beside its peers";
const COMMAND: &str = "cargo xtask bench --update";

pub(crate) fn html(sections: &[Section], file: &Path) -> Result<()> {
    let mut report = Report::new(TITLE, machine::describe());
    report.command(COMMAND);
    for section in sections {
        report.heading(&section.title);
        report.text(&section.how);
        report.table(&section.table);
        for target in &section.targets {
            report.text(&target.to_string());
        }
        section.notes.iter().for_each(|note| report.note(note));
        section.plots.iter().for_each(|plot| report.plot(plot));
    }
    Ok(report.write(file)?)
}

pub(crate) fn markdown(sections: &[Section], file: &Path) -> Result<()> {
    let text = text(sections)?;
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

fn text(sections: &[Section]) -> Result<String> {
    let mut text = format!(
        "# {TITLE}\n\nPrinted by `{COMMAND}` on {}. Figures are medians of rounds that were measured in \
         turns, with the least and the most; ratios are of neighbouring rounds.\n",
        machine::describe()
    );
    for section in sections {
        write!(text, "\n## {}\n\n{}\n\n", section.title, section.how)?;
        let header = &section.table.header;
        let rule: Vec<String> = header.iter().map(|_| "---".to_owned()).collect();
        for row in [header, &rule].into_iter().chain(&section.table.rows) {
            writeln!(text, "| {} |", row.join(" | "))?;
        }
        writeln!(text)?;
        for target in &section.targets {
            writeln!(text, "- {target}")?;
        }
        for note in &section.notes {
            writeln!(text, "- {note}")?;
        }
    }
    Ok(text)
}
