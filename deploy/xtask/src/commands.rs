// SPDX-License-Identifier: Apache-2.0
//! COMMANDS.md: every command and flag, in the words of `--help`.

use std::fmt::Write;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use crate::Cli;

const FILE: &str = "COMMANDS.md";

fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = weir_reference::head("Commands", "the commands' own `--help`");
    page.push_str("\n| command | |\n|---|---|\n");
    for command in commands(&root) {
        let name = command.get_name();
        let _ = writeln!(
            page,
            "| [`{name}`](#cargo-xtask-{name}) | {} |",
            about(command)
        );
    }
    for command in commands(&root) {
        section(&mut page, command, "cargo xtask");
    }
    page
}

/// A command, and those below it.
fn section(page: &mut String, command: &Command, above: &str) {
    let name = format!("{above} {}", command.get_name());
    let _ = write!(page, "\n## {name}\n\n{}.\n", about(command));
    let shown = |arg: &&Arg| !arg.is_hide_set() && arg.get_id() != "help";
    let mut arguments = command.get_arguments().filter(shown).peekable();
    if arguments.peek().is_some() {
        page.push_str("\n| argument | |\n|---|---|\n");
    }
    for arg in arguments {
        let _ = writeln!(page, "| `{}` | {} |", cell(&arg.to_string()), meaning(arg));
    }
    for below in commands(command) {
        section(page, below, &name);
    }
}

fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    let all = command.get_subcommands();
    all.filter(|command| command.get_name() != "help" && !command.is_hide_set())
}

fn about(command: &Command) -> String {
    cell(
        &command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default(),
    )
}

/// Help, values and default of an argument.
fn meaning(arg: &Arg) -> String {
    let mut parts = vec![arg.get_help().map(ToString::to_string).unwrap_or_default()];
    let takes_values = arg.get_num_args().is_some_and(|range| range.takes_values());
    let values = arg.get_possible_values();
    let names: Vec<_> = values
        .iter()
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if takes_values && !names.is_empty() {
        parts.push(names.join(", "));
    }
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults
        .map(|value| format!("`{}`", value.display()))
        .collect();
    if takes_values && !defaults.is_empty() {
        parts.push(format!("default {}", defaults.join(", ")));
    }
    cell(&parts.join("; "))
}

/// Text within a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

#[test]
fn commands_are_written_as_they_are() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    weir_reference::hold(&file, &page());
}

#[test]
fn every_command_has_a_place_in_the_readme() {
    let readme = include_str!("../README.md");
    for command in commands(&Cli::command()) {
        let row = format!("| `{}` |", command.get_name());
        assert!(readme.contains(&row), "{row}");
    }
}

/// Fails for a command that is none.
pub(crate) fn commands_named_in(document: &Path, text: &str) {
    let known = Cli::command();
    for part in text.split("cargo xtask ").skip(1) {
        let name: String = part
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-')
            .collect();
        let document = document.display();
        let is_known = name.is_empty() || known.find_subcommand(&name).is_some();
        assert!(is_known, "{document}: {name:?}");
    }
}
