// SPDX-License-Identifier: Apache-2.0
//! weir-control: answers, is ready, has one leader, the version of its filters, and the same clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use super::super::evidence::{Control, Evidence};
use super::super::finding::{Finding, Look};
use super::super::runbook::Runbook;
use super::listed;
use crate::screen::counted;

/// Its clock is told in whole seconds, and the way takes some.
const SKEW: Duration = Duration::from_secs(3);

pub(super) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut found = Vec::new();
    for asked in &evidence.controls {
        let at = asked.address.to_string();
        match &asked.said {
            Err(reason) => {
                let mut look = Look::at("weir-control", &at);
                look.broken(
                    format!("its admin pages cannot be read: {reason}"),
                    "start it, or name its admin address (admin.listen): --control ip:port. Sidecars go on by their last tables",
                ).alerts(Runbook::WeirControlDown);
                found.extend(look.or_fine(""));
            }
            Ok(control) => {
                found.extend(state(&at, control));
                found.extend(versions(&at, control));
                found.extend(clock(&at, control, evidence.now));
            }
        }
    }
    found.extend(leaders(evidence));
    found
}

fn state(at: &str, control: &Control) -> Vec<Finding> {
    let mut look = Look::at("weir-control", at);
    if let Some(reason) = &control.unready {
        look.broken(
            format!("it is not ready: {reason}"),
            "until it is, sidecars go on by their last tables",
        );
    }
    let tables = &control.tables;
    if let Some(reason) = &tables.configuration_refused {
        look.broken(
            format!("its configuration file is refused, and the last good one in force: {reason}"),
            "mend the file; it is read again within a second",
        )
        .alerts(Runbook::WeirConfigurationRefused);
    }
    if let Some(limit) = tables.memory.limit_bytes
        && tables.memory.counted_bytes > limit / 10 * 9
    {
        look.poor(
            format!("it uses {} of {limit} bytes", tables.memory.counted_bytes),
            "raise memory.limit: beyond it, caches are no longer asked",
        );
    }
    for reporter in &tables.reports_refused {
        let reasons = reporter.refused.iter();
        let reasons: Vec<_> = reasons
            .map(|(reason, count)| format!("{count} × {reason}"))
            .collect();
        look.poor(
            format!(
                "of the reports of {:?} some is not counted: {}",
                reporter.proxy,
                reasons.join(", ")
            ),
            "if this grows, that sidecar lies, repeats itself or has no right to report",
        )
        .alerts(Runbook::WeirReportsImplausible);
    }
    look.or_fine(format!("ready, epoch {}", tables.epoch))
}

/// An upgrade may take days, sidecar by sidecar: nothing breaks by it, and it should not be forgotten.
fn versions(at: &str, control: &Control) -> Vec<Finding> {
    let tables = &control.tables;
    let Some(own) = tables.program_version.as_deref() else {
        return Vec::new();
    };
    let mut look = Look::at("versions", at);
    let mut by_version: BTreeMap<Option<&str>, BTreeSet<&str>> = BTreeMap::new();
    // Replicas that follow are no filters.
    let filters = tables.proxies.iter();
    let filters = filters.filter(|one| one.kind == "weir" && !one.proxy.starts_with("replica/"));
    for proxy in filters {
        let version = proxy.program_version.as_deref();
        by_version.entry(version).or_default().insert(&proxy.proxy);
    }
    let same = by_version.remove(&Some(own)).map_or(0, |names| names.len());
    for (version, names) in by_version {
        let version = version.map_or_else(
            || "of before versions were told".to_owned(),
            |text| format!("{text:?}"),
        );
        look.poor(
            format!("this is {own:?}, the filter of {} is {version}", listed(names)),
            "finish the upgrade: first the filters, then weir-control (envoy-config/DESIGN.md#reloads)",
        );
    }
    look.or_fine(format!("{own:?}, as {}", counted(same, "filter")))
}

fn clock(at: &str, control: &Control, now: SystemTime) -> Vec<Finding> {
    let Some(date) = control.date else {
        return Vec::new();
    };
    let (skew, way) = match now.duration_since(date) {
        Ok(behind) => (behind, "behind"),
        Err(ahead) => (ahead.duration(), "ahead"),
    };
    let mut look = Look::at("clock", at);
    if skew > SKEW {
        look.poor(
            format!("it is {} s {way} of this machine's", skew.as_secs()),
            "set both by NTP: user priorities change by the hour, and pre-emption times are times of day",
        );
    }
    look.or_fine("within a few seconds of this machine's")
}

fn leaders(evidence: &Evidence) -> Vec<Finding> {
    let all: Vec<_> = evidence.answering().collect();
    let mut look = Look::at("leader", "weir-control");
    let role = |control: &Control| control.tables.replica.clone();
    let leading: Vec<_> = all
        .iter()
        .filter(|(_, control)| control.tables.leads())
        .map(|(address, _)| address.to_string())
        .collect();
    let alone = all.iter().any(|(_, control)| role(control).is_none());
    let (said, mend) = match (&*leading, all.len()) {
        (_, 0) => return Vec::new(),
        ([], _) => (
            "none of those that were asked leads".to_owned(),
            "name every replica: --control; if these are all, see that Consul answers (its lock says who leads)",
        ),
        ([_], _) => Default::default(),
        (many, _) if alone => (
            format!(
                "{} know nothing of each other, so each has tables and levels of its own",
                many.join(" and ")
            ),
            "give them the same `replicas` section, or sidecars only one of them",
        ),
        (many, _) => (
            format!("two lead: {}", many.join(" and ")),
            "this passes within the lock's time to live; if not, they do not ask the same Consul",
        ),
    };
    if !said.is_empty() {
        look.broken(said, mend);
    }
    for (address, control) in &all {
        if let Some(complaint) = role(control).and_then(|replica| replica.complaint) {
            look.poor(
                format!("{address}: {complaint}"),
                "see that Consul answers it",
            );
        }
    }
    look.or_fine(leading.join(", "))
}
