// SPDX-License-Identifier: Apache-2.0
//! loadtest/DOCUMENTS.md: what the five documents publish beside what the project has, from `loadtest/documents`.
//!
//! A row is held against the project: its commands exist with their flags, and its figures stand on a page that it
//! names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::commands::commands_named_in;
use crate::links::{files, root};

/// Folder of the rows, and page, below the workspace.
const ROWS: &str = "loadtest/documents";
const PAGE: &str = "loadtest/DOCUMENTS.md";
/// In the order of the page.
const NUMBERS: [&str; 5] = ["001", "002", "000", "003", "004"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    title: String,
    row: Vec<Row>,
    system: Vec<System>,
}

/// A table, a figure or a number that a document publishes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    item: String,
    shows: String,
    #[serde(default)]
    published: String,
    #[serde(default)]
    simulated: String,
    #[serde(default)]
    simulated_by: String,
    #[serde(default)]
    measured: String,
    #[serde(default)]
    measured_by: String,
    /// Pages with the figures, below the workspace, each with the heading or without.
    #[serde(default, rename = "where")]
    pages: Vec<String>,
    verdict: Verdict,
    #[serde(default)]
    why: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Reproduced,
    Fitted,
    Parameter,
    Differs,
    Open,
    Cannot,
}

impl Verdict {
    const ALL: [Self; 6] = [
        Self::Reproduced,
        Self::Fitted,
        Self::Parameter,
        Self::Differs,
        Self::Open,
        Self::Cannot,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Fitted => "fitted",
            Self::Parameter => "parameter",
            Self::Differs => "differs",
            Self::Open => "open",
            Self::Cannot => "cannot be had",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Reproduced => "the conclusion holds here",
            Self::Fitted => "the model was fitted to it, so that it says nothing of the model",
            Self::Parameter => "a setting of the experiment, taken over",
            Self::Differs => {
                "it comes out otherwise here, or is another thing here: the row says why"
            }
            Self::Open => "nothing here shows it yet",
            Self::Cannot => "nobody but the authors can show it",
        }
    }
}

/// A system or an algorithm that a document names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct System {
    name: String,
    #[serde(default)]
    section: String,
    /// Who implements it; absent: nobody.
    file: Option<String>,
    #[serde(default)]
    note: String,
}

fn documents() -> Vec<(&'static str, Document)> {
    let read = |number| {
        let file = root().join(ROWS).join(format!("document-{number}.toml"));
        let text =
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let document =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (number, document)
    };
    NUMBERS.map(read).into()
}

fn page(documents: &[(&str, Document)]) -> String {
    let mut page = String::from(
        "# What the documents publish, and what is here\n\nWritten by `cargo xtask keep` from [`documents`](documents), \
         a file a document; tests hold it, its commands and its figures. **Simulated** figures are of models, *measured* ones of \
         real parts; energy is a model always. A figure stands on the page that its verdict links.\n\n",
    );
    for verdict in Verdict::ALL {
        let _ = writeln!(page, "- *{}*: {}", verdict.name(), verdict.about());
    }
    page.push_str("\n| document |");
    for verdict in Verdict::ALL {
        let _ = write!(page, " {} |", verdict.name());
    }
    page.push_str(" systems | of them not here |\n|---|");
    page.push_str(&"---:|".repeat(Verdict::ALL.len() + 2));
    page.push('\n');
    for (number, document) in documents {
        let _ = write!(
            page,
            "| [{number}](#document-{number}): {} |",
            document.title
        );
        for verdict in Verdict::ALL {
            let count = document
                .row
                .iter()
                .filter(|row| row.verdict == verdict)
                .count();
            let _ = write!(page, " {count} |");
        }
        let missing = document
            .system
            .iter()
            .filter(|system| system.file.is_none());
        let _ = writeln!(page, " {} | {} |", document.system.len(), missing.count());
    }
    for (number, document) in documents {
        section(&mut page, number, document);
    }
    page
}

fn section(page: &mut String, number: &str, document: &Document) {
    let _ = write!(
        page,
        "\n## Document {number}\n\n{}\n\n| | published | simulated | measured | verdict |\n|---|---|---|---|---|\n",
        document.title
    );
    for row in &document.row {
        let _ = writeln!(
            page,
            "| **{}**: {} | {} | {} | {} | {} |",
            cell(&row.item),
            cell(&row.shows),
            cell(&row.published),
            figure(&row.simulated, &row.simulated_by),
            figure(&row.measured, &row.measured_by),
            verdict(row)
        );
    }
    page.push_str("\n| system that it names | section | here | |\n|---|---|---|---|\n");
    for system in &document.system {
        let here = system.file.as_deref().map_or("–".to_owned(), link);
        let _ = writeln!(
            page,
            "| {} | {} | {here} | {} |",
            cell(&system.name),
            cell(&system.section),
            cell(&system.note)
        );
    }
}

/// A figure, and the command that makes it.
fn figure(figure: &str, command: &str) -> String {
    match (figure, command) {
        ("", "") => "–".to_owned(),
        (figure, "") => cell(figure),
        (figure, command) => format!("{} (`{command}`)", cell(figure))
            .trim_start()
            .to_owned(),
    }
}

/// With links to the pages of the figures, and why.
fn verdict(row: &Row) -> String {
    let links: Vec<String> = row.pages.iter().map(|page| link(page)).collect();
    let mut parts = vec![format!("*{}*", row.verdict.name())];
    if !links.is_empty() {
        parts.push(format!("({})", links.join(", ")));
    }
    match row.why.as_str() {
        "" => {}
        why => parts.push(format!("– {}", cell(why))),
    }
    parts.join(" ")
}

/// To a file below the workspace, from the page's folder.
fn link(target: &str) -> String {
    let path = target.split('#').next().unwrap_or(target);
    let to = match target.strip_prefix("loadtest/") {
        Some(beside) => beside.to_owned(),
        None => format!("../{target}"),
    };
    format!("[`{path}`]({to})")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The numbers of a text as they are written, without separators of thousands and units.
fn numbers(text: &str) -> impl Iterator<Item = String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".,_".contains(c);
    let words = text.split(move |c| !is_part(c));
    let plain = words.map(|word| word.trim_matches([',', '.']).replace([',', '_'], ""));
    let plain = plain.map(|word| word.trim_end_matches(char::is_alphabetic).to_owned());
    plain.filter(|word| word.parse::<f64>().is_ok())
}

/// Figures of three digits or more that count. Shorter ones, a hundred and two are on every page.
pub(crate) fn figures(text: &str) -> Vec<String> {
    let is_figure = |number: &String| {
        let digits: String = number.chars().filter(char::is_ascii_digit).collect();
        digits.trim_start_matches('0').len() >= 3 && number != "100" && number != "200"
    };
    numbers(text).filter(is_figure).collect()
}

/// Equal numbers have it in common, however many zeros they are written with.
pub(crate) fn value(number: &str) -> u64 {
    number.parse::<f64>().unwrap_or_default().to_bits()
}

/// The values of the numbers on a page. A table of values alone has commas between them.
fn values_on(target: &str) -> BTreeSet<u64> {
    let mut file = root().join(target.split('#').next().unwrap_or(target));
    if file.is_dir() {
        file.push("README.md");
    }
    values_of(&file)
}

/// The same of a file.
pub(crate) fn values_of(file: &Path) -> BTreeSet<u64> {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let text = match file.extension().is_some_and(|kind| kind == "csv") {
        true => text.replace(',', " "),
        false => text,
    };
    numbers(&text).map(|number| value(&number)).collect()
}

/// Why a command does not exist; none where it does.
fn missing(command: &str, pages: &BTreeMap<String, String>) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let flags = words
        .iter()
        .filter(|word| word.starts_with("--") && word.len() > 2);
    let known = match words.as_slice() {
        ["cargo", "xtask", ..] => {
            commands_named_in(Path::new(PAGE), command);
            let lab = files(&root().join("loadtest/worker/lab/src"), ".rs");
            let lab = lab.iter().filter_map(|file| fs::read_to_string(file).ok());
            let mut known: String = lab.flat_map(|text| fields(&text)).collect();
            known.extend([pages["cargo xtask"].as_str(), &pages["weir-experiment"]]);
            known
        }
        ["cargo", "test" | "bench", "-p", package, rest @ ..] => {
            return missing_test(package, rest);
        }
        [program, rest @ ..] => {
            let Some(page) = pages.get(*program) else {
                return Some(format!("no program {program}"));
            };
            let names: Vec<&str> = rest
                .iter()
                .copied()
                .take_while(|word| !word.starts_with('-'))
                .collect();
            let heading = format!("\n## {program} {}\n", names.join(" "));
            if !page.contains(&heading) {
                return Some(format!("no {program} {}", names.join(" ")));
            }
            page.clone()
        }
        [] => return Some("nothing".to_owned()),
    };
    let mut unknown = flags.filter(|flag| !known.contains(**flag));
    unknown.next().map(|flag| format!("no flag {flag}"))
}

/// Fields of a program's arguments, as flags.
fn fields(text: &str) -> Vec<String> {
    let names = text
        .lines()
        .filter_map(|line| line.trim().split_once(": ").map(|(name, _)| name));
    let names = names.filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
    names
        .map(|name| format!(" --{} ", name.replace('_', "-")))
        .collect()
}

/// The same of a test by its name.
fn missing_test(package: &str, rest: &[&str]) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let Some(manifest) = files(&root(), "Cargo.toml")
        .into_iter()
        .find(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(&name)))
    else {
        return Some(format!("no package {package}"));
    };
    let folder = manifest.parent().unwrap();
    let mut rest = rest
        .iter()
        .copied()
        .filter(|word| *word != "--" && *word != "--nocapture");
    while let Some(word) = rest.next() {
        let is_there = match word {
            "--test" => {
                let name = rest.next().unwrap_or_default();
                folder.join(format!("tests/{name}.rs")).exists()
                    || folder.join(format!("tests/{name}/main.rs")).exists()
            }
            word => files(folder, ".rs").iter().any(|file| {
                let is_module = file.file_stem().is_some_and(|stem| stem == word);
                is_module || fs::read_to_string(file).is_ok_and(|text| text.contains(word))
            }),
        };
        if !is_there {
            return Some(format!("no test {word} in {package}"));
        }
    }
    None
}

/// Pages of commands by their program.
fn command_pages() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    for file in files(&root(), "COMMANDS.md") {
        let text = fs::read_to_string(&file).unwrap();
        let first = text
            .split("\n## ")
            .nth(1)
            .and_then(|rest| rest.lines().next());
        let program = match first {
            Some(heading) if heading.starts_with("cargo xtask") => "cargo xtask",
            Some(heading) => heading,
            None => continue,
        };
        pages.insert(program.to_owned(), text.clone());
    }
    assert!(pages.len() > 5, "{:?}", pages.keys());
    pages
}

#[test]
fn the_page_of_the_documents_is_written_as_their_rows_are() {
    weir_reference::hold(&root().join(PAGE), &page(&documents()));
}

#[test]
fn every_row_names_commands_that_exist_and_pages_that_have_its_figures() {
    let commands = command_pages();
    let mut wrong = Vec::new();
    for (number, document) in documents() {
        for row in &document.row {
            let name = format!("document {number}, {}", row.item);
            for command in [&row.simulated_by, &row.measured_by]
                .into_iter()
                .filter(|command| !command.is_empty())
            {
                let parts = command.split("; ");
                wrong.extend(
                    parts
                        .filter_map(|part| missing(part, &commands))
                        .map(|why| format!("{name}: {why}")),
                );
            }
            let there: BTreeSet<u64> = row.pages.iter().flat_map(|page| values_on(page)).collect();
            let figures = figures(&format!("{} {}", row.simulated, row.measured));
            let mut elsewhere = figures
                .iter()
                .filter(|figure| !there.contains(&value(figure)));
            if let Some(figure) = elsewhere.next() {
                wrong.push(format!("{name}: {figure} is not on {:?}", row.pages));
            }
            let has_reason = !row.why.is_empty();
            let needs_reason = !matches!(row.verdict, Verdict::Reproduced | Verdict::Parameter);
            if needs_reason && !has_reason {
                wrong.push(format!("{name}: no reason"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_not_there_is_noticed() {
    let pages = command_pages();
    for (command, is_there) in [
        ("cargo xtask demo --real", true),
        ("cargo xtask demo --unreal", false),
        ("weir-sim document-001 --hours 3 --seeds 5", true),
        ("weir-sim document-001 --weeks 3", false),
        ("weir-sim document-009", false),
        ("no-such-program run", false),
        (
            "cargo test -p weir-sim --test experiments document001",
            true,
        ),
        ("cargo test -p weir-sim --test lawless", false),
        (
            "cargo test -p weir-sim --test laws no_such_test_anywhere",
            false,
        ),
    ] {
        assert_eq!(missing(command, &pages).is_none(), is_there, "{command}");
    }
    assert_eq!(
        figures("1,234 of x264, 0.05 and 98.15 %, 3.50 s; 100"),
        ["1234", "98.15", "3.50"]
    );
}
