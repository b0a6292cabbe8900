// SPDX-License-Identifier: Apache-2.0
//! The sections as a page, of Markdown or HTML.

use std::fmt::Write;
use std::ops::RangeInclusive;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use weir_report::Report;
use weir_stage::machine;

use crate::bench::part::Part;
use crate::bench::section::Section;
use crate::variant::Variant;

/// Where none is asked for.
const LOADS: [f64; 4] = [0.6, 0.8, 0.95, 1.2];
/// Less takes too long, and more tells nothing new.
const LOAD: RangeInclusive<f64> = 0.1..=3.0;

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
    /// Also write the tables to loadtest/BENCH.md, in place of those of the same parts. At full length: what is
    /// published
    #[arg(long, conflicts_with = "quick")]
    pub(crate) update: bool,
    /// Of the part inference-loads: this share of what the hosts can do at most; repeatable. By default 0.6, 0.8, 0.95
    /// and 1.2
    #[arg(long = "load", value_name = "SHARE", conflicts_with = "update")]
    pub(crate) loads: Vec<f64>,
}

impl Asked {
    /// Shares of saturation that are measured.
    pub(super) fn loads(&self) -> Result<Vec<f64>> {
        if self.loads.is_empty() {
            return Ok(LOADS.to_vec());
        }
        ensure!(
            self.parts.contains(&Part::InferenceLoads),
            "--load is of the part inference-loads: name it, too"
        );
        let wrong = self.loads.iter().find(|load| !LOAD.contains(*load));
        match wrong {
            Some(load) => bail!(
                "--load {load}: a share of what the hosts can do is from {} to {}",
                LOAD.start(),
                LOAD.end()
            ),
            None => Ok(self.loads.clone()),
        }
    }

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
        let loads = self.loads.iter().map(|load| format!("--load {load}"));
        ["cargo xtask bench".to_owned()]
            .into_iter()
            .chain(parts)
            .chain(flags.map(|(_, flag)| flag.to_owned()))
            .chain(loads)
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
        page.push_str(&shown(section));
    }
    page
}

fn shown(section: &Section) -> String {
    let Section { title, how, .. } = section;
    let table = section.table.markdown();
    let mut text = format!("\n## {title}\n\n{how}\n\n{table}\n");
    for point in section.targets.iter().map(ToString::to_string) {
        let _ = writeln!(text, "- {point}");
    }
    for note in &section.notes {
        let _ = writeln!(text, "- {note}");
    }
    text
}

/// Begins the chunk of a part on the page that is published.
fn mark(part: Part) -> String {
    format!("<!-- {} -->\n", part.name())
}

/// What is published of a part: with its command and its machine.
pub(super) fn chunk(part: Part, sections: &[&Section]) -> String {
    let (mark, name, machine) = (mark(part), part.name(), machine::describe());
    let shown: String = sections.iter().map(|section| shown(section)).collect();
    format!("{mark}\nPrinted by `cargo xtask bench {name} --update` on {machine}.\n{shown}")
}

/// The page that is published, with these chunks in place of those that it has of the same parts.
pub(super) fn published(old: &str, new: impl IntoIterator<Item = (Part, String)>) -> String {
    let new: Vec<_> = new.into_iter().collect();
    let head = format!(
        "# {TITLE}\n\nEach part was printed by its command. Figures are medians of the rounds, with the least and the \
         most; ratios are of figures of one round. [How](experiment/src/bench/README.md).\n"
    );
    let chunks = Part::value_variants().iter().filter_map(|part| {
        let newest = new.iter().find(|(of, _)| of == part);
        newest
            .map(|(_, chunk)| chunk.clone())
            .or_else(|| of_part(old, *part))
    });
    std::iter::once(head)
        .chain(chunks.map(|chunk| chunk.trim_end().to_owned() + "\n"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The chunk of a part, if the page has one.
fn of_part(page: &str, part: Part) -> Option<String> {
    let begin = page.find(&mark(part))?;
    let rest = page.get(begin..)?;
    let end = rest
        .get(1..)?
        .find("\n<!-- ")
        .map_or(rest.len(), |end| end + 1);
    rest.get(..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_takes_the_place_of_its_older_self_and_leaves_the_others() {
        let chunk = |part: Part, text: &str| format!("{}\n{text}\n", mark(part));
        let old = published(
            "",
            [
                (Part::Push, chunk(Part::Push, "push 1")),
                (Part::Request, chunk(Part::Request, "request 1")),
            ],
        );
        let new = [
            (Part::Request, chunk(Part::Request, "request 2")),
            (Part::Decide, chunk(Part::Decide, "decide 1")),
        ];
        let new = published(&old, new);
        let order = ["request 2", "decide 1", "push 1"].map(|text| new.find(text).unwrap());
        assert!(order.is_sorted(), "{new}");
        assert!(!new.contains("request 1"), "{new}");
        assert_eq!(published(&new, []), new);
    }

    #[test]
    fn a_taste_of_some_parts_says_so() {
        let asked = |parts: &[Part], quick| Asked {
            parts: parts.to_vec(),
            quick,
            update: !quick,
            loads: vec![],
        };
        let taste = asked(&[Part::Push, Part::Decide], true);
        assert_eq!(taste.command(), "cargo xtask bench push decide --quick");
        assert!(taste.title().contains("QUICK"));
        assert_eq!(asked(&[], false).command(), "cargo xtask bench --update");
    }

    #[test]
    fn loads_are_those_of_their_part() {
        let asked = |parts: &[Part], loads: &[f64]| Asked {
            parts: parts.to_vec(),
            quick: false,
            update: false,
            loads: loads.to_vec(),
        };
        let part = [Part::InferenceLoads];
        assert_eq!(asked(&part, &[]).loads().unwrap(), LOADS);
        let two = asked(&part, &[0.5, 1.5]);
        assert_eq!(two.loads().unwrap(), [0.5, 1.5]);
        assert_eq!(
            two.command(),
            "cargo xtask bench inference-loads --load 0.5 --load 1.5"
        );
        for wrong in [asked(&part, &[0.0]), asked(&[Part::Inference], &[0.8])] {
            assert!(wrong.loads().is_err(), "{:?}", wrong.loads);
        }
    }
}
