// SPDX-License-Identifier: Apache-2.0
//! The sections as a page, of Markdown or HTML.

use std::fmt::Write;

use weir_report::Report;
use weir_stage::machine;

use crate::bench::part::Part;
use crate::bench::section::Section;
use crate::variant::Variant;

const TITLE: &str = "What Weir costs beside its peers";

/// What was asked for.
#[derive(Clone, Debug, clap::Args)]
pub struct Asked {
    /// Only these parts
    #[arg(value_name = "PART")]
    pub(crate) parts: Vec<Part>,
    /// Fewer and shorter rounds: a taste, with rougher figures
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also write the tables to loadtest/BENCH.md. All parts, at full length: what is published
    #[arg(long, conflicts_with_all = ["quick", "parts"])]
    pub(crate) update: bool,
}

impl Asked {
    fn title(&self) -> String {
        match self.quick {
            true => format!("{TITLE}: QUICK, in rough figures"),
            false => TITLE.to_owned(),
        }
    }

    /// The command that does it again.
    fn command(&self) -> String {
        let parts = self.parts.iter().map(Part::name);
        let flags = [(self.quick, "--quick"), (self.update, "--update")];
        let flags = flags.into_iter().filter(|(on, _)| *on);
        ["cargo xtask bench".to_owned()]
            .into_iter()
            .chain(parts)
            .chain(flags.map(|(_, flag)| flag.to_owned()))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

pub(super) fn report(asked: &Asked, sections: &[Section], missing: &[Part]) -> Report {
    let mut report = Report::new(asked.title(), machine::describe());
    report.command(&asked.command());
    if !missing.is_empty() {
        let missing: Vec<String> = missing.iter().map(Part::name).collect();
        report.note(&format!("NOT WHOLE: without {}", missing.join(", ")));
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
    report
}

pub(super) fn markdown(asked: &Asked, sections: &[Section]) -> String {
    let mut page = format!(
        "# {}\n\nPrinted by `{}` on {}. Figures are medians of the rounds, with the least and the most; \
         ratios are of figures of one round. [How](experiment/src/bench/README.md).\n",
        asked.title(),
        asked.command(),
        machine::describe()
    );
    for section in sections {
        let Section { title, how, .. } = section;
        let table = section.table.markdown();
        let _ = write!(page, "\n## {title}\n\n{how}\n\n{table}\n");
        for target in &section.targets {
            let _ = writeln!(page, "- {target}");
        }
        for note in &section.notes {
            let _ = writeln!(page, "- {note}");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taste_of_some_parts_says_so() {
        let asked = |parts: &[Part], quick| Asked {
            parts: parts.to_vec(),
            quick,
            update: !quick,
        };
        let taste = asked(&[Part::Push, Part::Decide], true);
        assert_eq!(taste.command(), "cargo xtask bench push decide --quick");
        assert!(taste.title().contains("QUICK"));
        assert_eq!(asked(&[], false).command(), "cargo xtask bench --update");
    }
}
