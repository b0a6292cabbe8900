// SPDX-License-Identifier: Apache-2.0
//! From what was written to what is checked.

mod core_policy;
mod energy;
mod jobs;
mod mesh;
mod names;
mod network;
mod policy;
mod remote;
mod shares;
mod tail;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_saphyr::Spanned;
use weir_events::FunctionId;
use weir_settings::{Error, Scope, Value};
use weir_uprobe::Probe;

use super::shares::{Service, Shares};
use super::{Config, Events, Places, Tail, TailSource, Uprobe, frequency, written};
use crate::apply::Driver;
use crate::book::energy::Class;
use crate::frequency::Policy;
use crate::planner::STALE;
use crate::sensed::FUNCTIONS;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Checks what was written in the file.
pub(super) fn file(path: &Path, written: written::File) -> Result<Config, Error> {
    let root = Scope::root(path);
    let functions = functions(&written, &root)?;
    let (policy, places) = core_frequencies(&written, &functions, &root)?;
    let mut shares = shares::shares(&written, &root)?;
    let tail = tail(&written.tail, shares.as_mut(), &root.section("tail"))?;
    let service = shares.as_ref().and_then(|shares| match &shares.service {
        Some(Service::Cgroup(path)) => Some(path.clone()),
        _ => None,
    });
    Ok(Config {
        cores: cores(&written.cores, &root)?,
        driver: root.choice(
            &written.driver,
            "driver",
            None,
            &[
                ("auto", None),
                ("userspace", Some(Driver::Userspace)),
                ("clamp", Some(Driver::Clamp)),
            ],
        )?,
        // That of document 002, section 4.8.
        tick: root.duration(&written.tick, "tick", ms(50), ms(1)..=ms(10_000))?,
        tail,
        policy,
        shares,
        mesh: mesh::mesh(&written.mesh, &root)?,
        energy: energy::energy(&written.energy, &functions, &root.section("energy"))?,
        functions: functions.into_iter().map(|f| (f.id, f.name)).collect(),
        events: events(&written.events, &root.section("events"))?,
        uprobes: uprobes(&written, service.as_deref(), &root)?,
        admin: admin(&written.admin, &root.section("admin"))?,
        state_directory: state_directory(path, &written)?,
        places,
    })
}

/// The policy of frequencies and where it is written; none where cores are divided alone.
fn core_frequencies(
    written: &written::File,
    functions: &[Function<'_>],
    root: &Scope<'_>,
) -> Result<(Option<Policy>, Option<Places>), Error> {
    match &written.policy {
        Some(section) => {
            let (policy, places) = policy::policy(section, functions, root)?;
            Ok((Some(policy), Some(places)))
        }
        None if written.core_policy.is_none() => {
            let reason = "required, or core_policy; three_state: {} is document 002's";
            Err(root.refuse(&None, "policy", reason))
        }
        None => Ok((None, None)),
    }
}

/// The measurement of latency, as the division of the cores wants it and is told of it.
fn tail(
    written: &written::Tail,
    shares: Option<&mut Shares>,
    scope: &Scope<'_>,
) -> Result<Tail, Error> {
    let division = shares.map(|shares| &mut shares.division);
    let by_latency = division.and_then(|division| Some((division.by_latency()?, division)));
    let Some((policy, division)) = by_latency else {
        return tail::tail(written, 0.99, scope);
    };
    let tail = tail::tail(written, QUANTILE, scope)?;
    division.measures(&tail);
    if tail.source == TailSource::Calls {
        return Ok(tail);
    }
    fresh(&tail, written, policy, scope)?;
    Ok(tail)
}

/// That a target of a core policy is for.
const QUANTILE: f64 = 0.95;

/// Refuses a tail that is asked for so seldom that it is forgotten in between.
fn fresh(
    tail: &Tail,
    written: &written::Tail,
    policy: &str,
    scope: &Scope<'_>,
) -> Result<(), Error> {
    if tail.every <= STALE / 2 {
        return Ok(());
    }
    let reason =
        format!("at most 1s with {policy}, which goes by what was measured in the last 2s");
    Err(scope.refuse(&written.every, "every", reason))
}

/// The one choice that is written, with its line; `none` says what is wrong where there is none.
fn one<'n>(
    choices: &[(&'n str, Option<u64>)],
    scope: &Scope<'_>,
    none: &str,
) -> Result<(&'n str, u64), Error> {
    let line = |(name, line): &(&'n str, Option<u64>)| Some((*name, (*line)?));
    let mut chosen: Vec<(&str, u64)> = choices.iter().filter_map(line).collect();
    match chosen[..] {
        [one] => Ok(one),
        [] => {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let reason = format!("{none}; one of {}", names.join(", "));
            Err(scope.refuse(&None, "", reason))
        }
        _ => {
            // In the order of the file.
            chosen.sort_by_key(|(_, line)| *line);
            let ((first, _), (second, line)) = (chosen[0], chosen[1]);
            let reason = format!("contradicts {first}; leave one out");
            Err(scope.at(line).refuse(&None, second, reason))
        }
    }
}

fn section_line<T>(section: &Option<Spanned<T>>) -> Option<u64> {
    section.as_ref().map(|section| section.referenced.line())
}

fn line_of(value: &Value) -> Option<u64> {
    section_line(value)
}

/// `all`, or numbers and ranges as the kernel writes them.
fn cores(value: &Value, root: &Scope<'_>) -> Result<Option<Vec<u32>>, Error> {
    root.note("cores", "cores", Some("all".to_owned()), None);
    root.parse(value, "cores", None, |text| {
        if text == "all" {
            return Ok(None);
        }
        let list = crate::root::core_list(text)
            .filter(|list| !list.is_empty())
            .ok_or_else(|| format!("{text:?} is not a list of cores, as in 0-3,8; or all"))?;
        Ok(Some(list))
    })
}

/// A hot function as it was written.
struct Function<'a> {
    id: u8,
    name: String,
    ladder: Option<&'a [Spanned<written::Rung>]>,
    class: Class,
    scope: Scope<'a>,
}

fn functions<'a>(written: &'a written::File, root: &Scope<'a>) -> Result<Vec<Function<'a>>, Error> {
    let mut functions: Vec<Function<'a>> = Vec::new();
    for (index, function) in written.functions.iter().enumerate() {
        let scope = root.section("functions").item(index);
        let scope = scope.at(function.referenced.line());
        let value = &function.value;
        if value.id.is_none() {
            return Err(scope.refuse(&None, "id", "required; 0 to 15, as producers give it"));
        }
        let id = scope.whole(&value.id, "id", 0, 0..=FUNCTIONS as u64 - 1)? as u8;
        if functions.iter().any(|other| other.id == id) {
            return Err(scope.refuse(&value.id, "id", format!("{id} is there already")));
        }
        let default = format!("function{id}");
        let fits = |text: &str| (1..=256).contains(&text.len());
        let name = scope.text(&value.name, "name", &default, fits, "1 to 256 bytes")?;
        functions.push(Function {
            id,
            class: energy::class(value, id, &name, &scope)?,
            name,
            ladder: value.ladder.as_deref(),
            scope,
        });
    }
    Ok(functions)
}

fn events(written: &written::Events, scope: &Scope<'_>) -> Result<Events, Error> {
    let absolute = |text: &str| text.starts_with('/');
    let path = scope.text(
        &written.path,
        "path",
        weir_events::DEFAULT_RING,
        absolute,
        "an absolute path",
    )?;
    const LANE: u32 = 256;
    scope.note("group", "name or number", None, None);
    let range = "16 to 65536".to_owned();
    scope.note(
        "events_per_lane",
        "whole number",
        Some(LANE.to_string()),
        Some(range),
    );
    Ok(Events {
        path: path.into(),
        group: scope.parse(&written.group, "group", None, |text| {
            names::group(text).map(Some)
        })?,
        lanes: scope.whole(&written.lanes, "lanes", 256, 1..=4096)? as u32,
        events_per_lane: scope.parse(
            &written.events_per_lane,
            "events_per_lane",
            LANE,
            |text| {
                let number: u32 = text
                    .parse()
                    .map_err(|_| format!("{text:?} is not a whole number"))?;
                match number.is_power_of_two() && (16..=65_536).contains(&number) {
                    true => Ok(number),
                    false => Err(format!("{number} is not a power of two in 16 to 65536")),
                }
            },
        )?,
    })
}

/// As a cgroup: every process that runs the file.
const EVERYBODY: &str = "all";

/// `service`: its cgroup, if it has one.
fn uprobes(
    written: &written::File,
    service: Option<&str>,
    root: &Scope<'_>,
) -> Result<Vec<Uprobe>, Error> {
    let mut probes = Vec::new();
    for (index, uprobe) in written.uprobes.iter().enumerate() {
        let scope = root.section("uprobes").item(index);
        let scope = scope.at(uprobe.referenced.line());
        let value = &uprobe.value;
        let required = [
            (&value.function, "function", "required; 0 to 15"),
            (
                &value.binary,
                "binary",
                "required; the program or the library",
            ),
            (
                &value.symbol,
                "symbol",
                "required; the function's name, or 0x and its offset",
            ),
        ];
        if let Some((_, field, reason)) = required.iter().find(|(value, ..)| value.is_none()) {
            return Err(scope.refuse(&None, field, reason));
        }
        let absolute = |text: &str| text.starts_with('/');
        let binary = scope.text(&value.binary, "binary", "", absolute, "an absolute path")?;
        let any = |text: &str| !text.is_empty();
        scope.note("pid", "process id", None, None);
        let function = scope.whole(&value.function, "function", 0, 0..=FUNCTIONS as u64 - 1)?;
        let function = FunctionId::new(function as u8)
            .ok_or_else(|| scope.refuse(&None, "function", "no such number"))?;
        let process = scope.parse(&value.pid, "pid", None, |text| {
            let pid = text.parse().map(Some);
            pid.map_err(|_| format!("{text:?} is not a process id"))
        })?;
        let cgroup = match &value.cgroup {
            Some(text) if text.value == EVERYBODY => None,
            Some(_) => Some(shares::cgroup(&value.cgroup, "cgroup", "", &scope)?),
            // A process that is named is the one that is meant.
            None => service.filter(|_| process.is_none()).map(str::to_owned),
        };
        let probe = Probe {
            function,
            binary: binary.into(),
            symbol: scope.text(&value.symbol, "symbol", "", any, "a name")?,
            process,
            no_unwinding: scope.boolean(&value.no_unwinding, "no_unwinding", false)?,
        };
        probes.push(Uprobe { probe, cgroup });
    }
    Ok(probes)
}

fn admin(written: &written::Admin, scope: &Scope<'_>) -> Result<std::net::SocketAddr, Error> {
    let listen = scope.address(&written.listen, "listen", "127.0.0.1:9414")?;
    let plaintext = scope.boolean(&written.plaintext, "plaintext", false)?;
    match listen.ip().is_loopback() || plaintext {
        true => Ok(listen),
        false => Err(scope.refuse(
            &written.listen,
            "listen",
            "not loopback, and admin has no TLS; write plaintext: true if anyone who reaches it may read it",
        )),
    }
}

/// Of a file of which nothing else is checked.
pub(super) fn state_directory(path: &Path, written: &written::File) -> Result<PathBuf, Error> {
    let absolute = |text: &str| text.starts_with('/');
    let directory = Scope::root(path).text(
        &written.state_directory,
        "state_directory",
        "/run/weir",
        absolute,
        "an absolute path",
    )?;
    Ok(directory.into())
}
