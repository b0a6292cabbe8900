// SPDX-License-Identifier: Apache-2.0
//! The sections as files.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Error, Result};
use weir_report::Report;
use weir_stage::machine;

use crate::part::Part;
use crate::section::Section;

const TITLE: &str = "What Weir costs beside its peers";

/// What was asked for.
pub(crate) struct Asked<'a> {
    /// Named on the command line; none: all.
    pub(crate) parts: &'a [Part],
    pub(crate) quick: bool,
    pub(crate) published: bool,
}

impl Asked<'_> {
    fn title(&self) -> String {
        match self.quick {
            true => format!("{TITLE}: QUICK, in rough figures"),
            false => TITLE.to_owned(),
        }
    }

    /// The command that does it again.
    fn command(&self) -> String {
        let mut command = "cargo xtask bench".to_owned();
        for part in self.parts {
            command.push(' ');
            command.push_str(part.name());
        }
        let flags = [(self.quick, " --quick"), (self.published, " --update")];
        command.extend(
            flags
                .into_iter()
                .filter(|(on, _)| *on)
                .map(|(_, flag)| flag),
        );
        command
    }
}

pub(crate) fn html(
    sections: &[Section],
    asked: &Asked<'_>,
    failed: Option<&Error>,
    file: &Path,
) -> Result<()> {
    let mut report = Report::new(asked.title(), machine::describe());
    report.command(&asked.command());
    if let Some(error) = failed {
        report.note(&format!(
            "NOT WHOLE: a part failed and those after it were not run: {error:#}"
        ));
    }
    for section in sections {
        report.heading(&section.title);
        report.text(&section.how);
        report.table(&section.table);
        let targets: Vec<String> = section.targets.iter().map(ToString::to_string).collect();
        report.list(&targets);
        report.list(&section.notes);
        section.plots.iter().for_each(|plot| report.plot(plot));
    }
    Ok(report.write(file)?)
}

pub(crate) fn markdown(sections: &[Section], asked: &Asked<'_>, file: &Path) -> Result<()> {
    let text = text(sections, asked)?;
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

fn text(sections: &[Section], asked: &Asked<'_>) -> Result<String> {
    let mut text = format!(
        "# {}\n\nPrinted by `{}` on {}. Figures are medians of the rounds, with the least and the most; \
         ratios are of figures of one round. [How](bench/README.md).\n",
        asked.title(),
        asked.command(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taste_of_some_parts_says_so() {
        let asked = |parts, quick| Asked {
            parts,
            quick,
            published: !quick,
        };
        let taste = asked(&[Part::Push, Part::Decide], true);
        assert_eq!(taste.command(), "cargo xtask bench push decide --quick");
        assert!(taste.title().contains("QUICK"));
        assert_eq!(asked(&[], false).command(), "cargo xtask bench --update");
    }
}
