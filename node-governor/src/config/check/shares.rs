// SPDX-License-Identifier: Apache-2.0
//! The service, its core policy and the batch jobs.

use std::path::Path;

use serde_saphyr::Spanned;
use weir_settings::{Error, Scope, Value};

use super::jobs::Listed;
use super::{core_policy, jobs, line_of, ms, network, one, section_line, written};
use crate::config::shares::{Division, OtherService, Service, Shares};
use crate::cores::Refused;
use crate::jobs::spec::{Batch, OnStop, Source};

/// None where cores are not divided; then nothing may be there that only serves for it.
pub(super) fn shares(written: &written::File, root: &Scope<'_>) -> Result<Option<Shares>, Error> {
    let Some(section) = &written.core_policy else {
        let lines = [
            ("service", section_line(&written.service)),
            ("jobs", section_line(&written.jobs)),
            ("batch", section_line(&written.batch)),
            ("network", section_line(&written.network)),
        ];
        for (field, line) in lines {
            if let Some(line) = line {
                let reason = "nothing reads it without core_policy";
                return Err(root.at(line).refuse(&None, field, reason));
            }
        }
        return Ok(None);
    };
    let scope = root.section("core_policy").at(section.referenced.line());
    let (mut division, places, others) = core_policy::division(&section.value, &scope)?;
    if division.frequency_steps() > 0 && written.policy.is_none() {
        let reason = "needs policy, above which it raises: powersave: {} is the lowest";
        return Err(places.of(Refused {
            field: "frequency_steps".to_owned(),
            reason: reason.to_owned(),
        }));
    }
    let performance = |policy: &Spanned<written::Policy>| policy.value.performance.is_some();
    if division.power().is_some() && !written.policy.as_ref().is_some_and(performance) {
        let reason = "needs policy: { performance: {} }, from which jobs' cores are lowered";
        return Err(places.of(Refused {
            field: "guaranteed".to_owned(),
            reason: reason.to_owned(),
        }));
    }
    let network = network::network(&written.network, &mut division, root)?;
    if division.lacks_link() {
        return Err(places.of(Refused {
            field: "network_steps".to_owned(),
            reason: "needs network, whose link is shared".to_owned(),
        }));
    }
    let jobs = jobs::jobs(written, &division, root)?;
    let all: Vec<_> = jobs.iter().map(|job| job.spec.job.clone()).collect();
    let checked = division.policy(&division.named(), &all);
    checked.map_err(|refused| places.of(refused))?;
    let service = service(&written.service, &division, root)?;
    let batch = batch(&written.batch, root)?;
    apart(service.as_ref(), &others, &batch, &jobs, written, root)?;
    Ok(Some(Shares {
        service,
        others,
        division: division.here(),
        jobs: jobs
            .into_iter()
            .filter(|job| job.here)
            .map(|job| job.spec)
            .collect(),
        batch,
        network,
        places,
    }))
}

fn service(
    written: &Option<Spanned<written::Service>>,
    division: &Division,
    root: &Scope<'_>,
) -> Result<Option<Service>, Error> {
    let Some(section) = written else {
        return match division.has_service() {
            true => Err(root.refuse(
                &None,
                "service",
                "required: whose cores core_policy is about; one of cgroup, pid_file, pid",
            )),
            false => Ok(None),
        };
    };
    let scope = root.section("service").at(section.referenced.line());
    if !division.has_service() {
        let reason = "static_plan gives it no cores on this node";
        return Err(scope.refuse(&None, "", reason));
    }
    who(&section.value, &scope).map(Some)
}

/// The one choice that is written.
pub(super) fn who(value: &written::Service, scope: &Scope<'_>) -> Result<Service, Error> {
    let choices = [
        ("cgroup", line_of(&value.cgroup)),
        ("pid_file", line_of(&value.pid_file)),
        ("pid", line_of(&value.pid)),
    ];
    let (name, _) = one(&choices, scope, "says not who it is")?;
    Ok(match name {
        "cgroup" => Service::Cgroup(cgroup(&value.cgroup, "cgroup", "", scope)?),
        "pid_file" => {
            let absolute = |text: &str| text.starts_with('/');
            let path = scope.text(
                &value.pid_file,
                "pid_file",
                "",
                absolute,
                "an absolute path",
            )?;
            Service::PidFile(path.into())
        }
        // 1 is everybody's parent. Linux has no more than 2^22 (`PID_MAX_LIMIT`).
        _ => Service::Pid(scope.whole(&value.pid, "pid", 0, 2..=1 << 22)? as i32),
    })
}

/// A path below the cgroup mount.
pub(super) fn cgroup(
    value: &Value,
    field: &str,
    default: &str,
    scope: &Scope<'_>,
) -> Result<String, Error> {
    let below = |text: &str| {
        let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
        text.split('/').all(is_name)
    };
    let shape = "a path below the cgroup mount, as in system.slice/memcached.service";
    scope.text(value, field, default, below, shape)
}

fn batch(written: &Option<Spanned<written::Batch>>, root: &Scope<'_>) -> Result<Batch, Error> {
    let absent = written::Batch::default();
    let scope = root.section("batch");
    let (scope, value) = match written {
        Some(section) => (scope.at(section.referenced.line()), &section.value),
        None => (scope, &absent),
    };
    let absolute = |text: &str| text.starts_with('/');
    let logs = scope.text(
        &value.logs,
        "logs",
        "/var/log/weir",
        absolute,
        "an absolute path",
    )?;
    Ok(Batch {
        cgroup: cgroup(&value.cgroup, "cgroup", "weir", &scope)?,
        logs: logs.into(),
        on_stop: scope.choice(
            &value.on_stop,
            "on_stop",
            OnStop::default(),
            &[("keep", OnStop::Keep), ("end", OnStop::End)],
        )?,
        // systemd's own limit is 90 s.
        grace: scope.duration(&value.grace, "grace", ms(10_000), ms(0)..=ms(600_000))?,
    })
}

/// A cgroup has one owner: what one is told would hold for those inside of it, too.
fn apart(
    service: Option<&Service>,
    others: &[OtherService],
    batch: &Batch,
    jobs: &[Listed],
    written: &written::File,
    root: &Scope<'_>,
) -> Result<(), Error> {
    let mut owned = Vec::new();
    if let Some(Service::Cgroup(path)) = service {
        let line = section_line(&written.service);
        owned.push((path, "service.cgroup".to_owned(), line));
    }
    for (index, other) in others.iter().enumerate() {
        if let Service::Cgroup(path) = &other.service {
            let field = format!("core_policy.parties.others[{index}].service.cgroup");
            owned.push((path, field, Some(other.line)));
        }
    }
    let line = section_line(&written.batch);
    owned.push((&batch.cgroup, "batch.cgroup".to_owned(), line));
    for (index, job) in jobs.iter().enumerate().filter(|(_, job)| job.here) {
        if let Source::Cgroup(path) = &job.spec.source {
            owned.push((path, format!("jobs[{index}].cgroup"), Some(job.line)));
        }
    }
    for (index, (path, field, line)) in owned.iter().enumerate() {
        let meets =
            |other: &str| Path::new(path).starts_with(other) || Path::new(other).starts_with(path);
        if let Some((other, owner, _)) = owned[..index].iter().find(|(other, ..)| meets(other)) {
            let reason = format!("{path:?} and {owner} {other:?}: one is in the other");
            return Err(root.at(line.unwrap_or(1)).refuse(&None, field, reason));
        }
    }
    Ok(())
}
