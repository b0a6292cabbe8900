// SPDX-License-Identifier: Apache-2.0
//! Batch jobs: commands that can be run, and cgroups.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_saphyr::Spanned;
use weir_settings::{Error, Scope, Text, Value};

use super::names;
use super::shares::cgroup;
use super::{line_of, ms, one, section_line, written};
use crate::config::shares::Division;
use crate::jobs::spec::{Command, Source, Spec};
use crate::jobs::{Job, Queue};

/// More than any machine has use for.
const MOST_THREADS: u64 = 4096;
/// Nobody waits longer: eleven years.
const LONGEST: Duration = ms(100_000 * 3_600_000);

/// A job of the file.
pub(super) struct Listed {
    pub(super) spec: Spec,
    /// It runs on this node. Programs are looked for only then.
    pub(super) here: bool,
    pub(super) line: u64,
}

pub(super) fn jobs(
    written: &written::File,
    division: &Division,
    root: &Scope<'_>,
) -> Result<Vec<Listed>, Error> {
    let batch = written.batch.as_ref();
    let batch = |scope: &Scope<'_>| match batch {
        Some(section) => {
            let scope = scope.section("batch").at(section.referenced.line());
            user(&section.value.user, names::unsaid(), &scope)
        }
        None => Ok(names::unsaid()),
    };
    let mut jobs: Vec<Listed> = Vec::new();
    let written = written.jobs.iter().flat_map(|jobs| &jobs.value);
    for (index, job) in written.enumerate() {
        let line = job.referenced.line();
        let scope = root.section("jobs").item(index).at(line);
        let value = &job.value;
        let name = name(value, &scope)?;
        if jobs.iter().any(|other| other.spec.job.name == name) {
            let reason = format!("{name:?} is there already");
            return Err(scope.refuse(&value.name, "name", reason));
        }
        let here = division.is_here(&name);
        let mut spec = spec(name, value, here, &scope)?;
        // Known on the node where the job runs.
        if let Source::Command(command) = &mut spec.source
            && here
        {
            command.user = user(&value.user, batch(root)?, &scope)?;
        }
        jobs.push(Listed { spec, here, line });
    }
    Ok(jobs)
}

/// It is a folder's and a file's name, too.
fn name(written: &written::Job, scope: &Scope<'_>) -> Result<String, Error> {
    if written.name.is_none() {
        return Err(scope.refuse(&None, "name", "required"));
    }
    let fits = |text: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (1..=64).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(is_part)
    };
    let shape = "1 to 64 letters, digits, - _ and ., not beginning with a dot";
    scope.text(&written.name, "name", "", fits, shape)
}

fn user(
    written: &Value,
    default: Option<(u32, u32)>,
    scope: &Scope<'_>,
) -> Result<Option<(u32, u32)>, Error> {
    scope.note("user", "name or number", None, None);
    scope.parse(written, "user", default, |text| names::user(text).map(Some))
}

fn spec(
    name: String,
    written: &written::Job,
    here: bool,
    scope: &Scope<'_>,
) -> Result<Spec, Error> {
    let queues = [
        ("short", Queue::Short),
        ("medium", Queue::Medium),
        ("long", Queue::Long),
    ];
    let threads = scope.whole(&written.threads, "threads", 1, 1..=MOST_THREADS)?;
    let takes = scope.duration(&written.takes, "takes", Duration::ZERO, ms(1)..=LONGEST)?;
    Ok(Spec {
        job: Job {
            name,
            queue: scope.choice(&written.queue, "queue", Queue::Medium, &queues)?,
            threads: threads as u32,
        },
        source: source(written, here, scope)?,
        takes: written.takes.as_ref().map(|_| takes),
    })
}

fn source(written: &written::Job, here: bool, scope: &Scope<'_>) -> Result<Source, Error> {
    scope
        .section("command")
        .item(0)
        .note("", "text", None, None);
    let choices = [
        ("command", section_line(&written.command)),
        ("cgroup", line_of(&written.cgroup)),
    ];
    one(&choices, scope, "says not what it is")?;
    let Some(line) = &written.command else {
        let only = [
            ("directory", line_of(&written.directory)),
            ("environment", section_line(&written.environment)),
            ("user", line_of(&written.user)),
        ];
        for (field, line) in only {
            if let Some(line) = line {
                let reason = "only a command reads it";
                return Err(scope.at(line).refuse(&None, field, reason));
            }
        }
        return Ok(Source::Cgroup(cgroup(
            &written.cgroup,
            "cgroup",
            "",
            scope,
        )?));
    };
    let command = Command {
        line: command_line(line, scope)?,
        directory: directory(written, here, scope)?,
        environment: environment(written, scope)?,
        user: None,
    };
    if here {
        runnable(&command).map_err(|reason| {
            scope
                .at(line.referenced.line())
                .refuse(&None, "command", reason)
        })?;
    }
    Ok(Source::Command(command))
}

fn command_line(written: &Spanned<Vec<Text>>, scope: &Scope<'_>) -> Result<Vec<String>, Error> {
    let line: Vec<String> = written
        .value
        .iter()
        .map(|text| text.value.clone())
        .collect();
    let reason = match line.first() {
        None => "is empty; a list of the program and its arguments".to_owned(),
        Some(program) if !program.contains('/') => {
            format!(
                "{program:?} is not a path with a slash, as in /usr/bin/zstd; PATH is not searched"
            )
        }
        Some(_) if line.iter().any(|part| part.contains('\0')) => "has a NUL".to_owned(),
        Some(_) => return Ok(line),
    };
    let scope = scope.at(written.referenced.line());
    Err(scope.refuse(&None, "command", reason))
}

fn directory(
    written: &written::Job,
    here: bool,
    scope: &Scope<'_>,
) -> Result<Option<PathBuf>, Error> {
    scope.note("directory", "path", None, None);
    scope.parse(&written.directory, "directory", None, |text| {
        let path = Path::new(text);
        match path.is_absolute() {
            false => Err(format!("{text:?} is not an absolute path")),
            true if here && !path.is_dir() => Err(format!("{text:?} is no directory")),
            true => Ok(Some(path.to_owned())),
        }
    })
}

fn environment(
    written: &written::Job,
    scope: &Scope<'_>,
) -> Result<BTreeMap<String, String>, Error> {
    let scope = scope.section("environment");
    scope.note("<name>", "text", None, None);
    let mut environment = BTreeMap::new();
    for (name, text) in written
        .environment
        .iter()
        .flat_map(|section| &section.value)
    {
        let value = Some(text.clone());
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(scope.refuse(&value, name, "is no name of a variable"));
        }
        if text.value.contains('\0') {
            return Err(scope.refuse(&value, name, "has a NUL"));
        }
        environment.insert(name.clone(), text.value.clone());
    }
    Ok(environment)
}

/// Whether the program is there and can be run.
fn runnable(command: &Command) -> Result<(), String> {
    let program = command.line.first().map(String::as_str).unwrap_or_default();
    let path = match (&command.directory, Path::new(program)) {
        (_, path) if path.is_absolute() => path.to_owned(),
        (Some(directory), path) => directory.join(path),
        (None, _) => {
            return Err(format!(
                "{program:?} is not an absolute path, and there is no directory"
            ));
        }
    };
    let about = std::fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    match about.is_file() && about.permissions().mode() & 0o111 != 0 {
        true => Ok(()),
        false => Err(format!("{}: cannot be executed", path.display())),
    }
}
