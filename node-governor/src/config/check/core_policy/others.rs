// SPDX-License-Identifier: Apache-2.0
//! Services beside the one that `service` names.

use serde_saphyr::Spanned;
use weir_settings::{Error, Scope};

use super::{Reading, cores};
use crate::config::check::{shares, tail};
use crate::config::shares::OtherService;
use crate::config::{TailSource, written};
use crate::cores::Cores;
use crate::cores::parties::{Params, services::Other};

impl Reading<'_> {
    pub(super) fn others(
        &mut self,
        written: &[Spanned<written::Other>],
    ) -> Result<Vec<Other>, Error> {
        let mut others = Vec::new();
        for (index, other) in written.iter().enumerate() {
            let scope = self.scope.section("others").item(index);
            let scope = scope.at(other.referenced.line());
            let value = &other.value;
            let places = [
                ("name", &value.name),
                ("least", &value.least),
                ("target", &value.target),
            ];
            for (field, value) in places {
                let place = scope.refuse(value, field, "");
                self.remember(format!("others[{index}].{field}"), place);
            }
            others.push(Other {
                name: name(value, &scope)?,
                least: cores(&value.least, "least", Cores::NONE, &scope)?,
                target: scope.duration(
                    &value.target,
                    "target",
                    Params::default().target,
                    super::ms(0)..=super::LONGEST,
                )?,
            });
            self.others.push(service(value, &scope)?);
        }
        Ok(others)
    }
}

/// A label's value, and where it is remembered how it was found.
fn name(written: &written::Other, scope: &Scope<'_>) -> Result<String, Error> {
    if written.name.is_none() {
        return Err(scope.refuse(&None, "name", "required"));
    }
    let fits = |text: &str| (1..=64).contains(&text.len());
    scope.text(&written.name, "name", "", fits, "1 to 64 bytes")
}

fn service(written: &written::Other, scope: &Scope<'_>) -> Result<OtherService, Error> {
    let Some(section) = &written.service else {
        let reason = "required: who it is; one of cgroup, pid_file, pid";
        return Err(scope.refuse(&None, "service", reason));
    };
    let line = section.referenced.line();
    let measured = scope.section("tail");
    let tail = tail::tail(&written.tail, super::super::QUANTILE, &measured)?;
    if tail.source == TailSource::Calls {
        let reason =
            "required: prometheus, envoy or promql; calls of hot functions are the first service's";
        return Err(measured.refuse(&written.tail.source, "source", reason));
    }
    super::super::fresh(&tail, &written.tail, "parties", &measured)?;
    Ok(OtherService {
        name: name(written, scope)?,
        service: shares::who(&section.value, &scope.section("service").at(line))?,
        line,
        tail,
    })
}
