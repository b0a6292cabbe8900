// SPDX-License-Identifier: Apache-2.0
//! weir-control, and the service's host there.

use serde_saphyr::Spanned;
use weir_settings::{Error, Scope, Value};

use super::{ms, remote, written};
use crate::config::{Mesh, Trust};
use crate::pressure;
use crate::sense::mesh::endpoint;

pub(super) fn mesh(
    written: &Option<Spanned<written::Mesh>>,
    root: &Scope<'_>,
) -> Result<Option<Mesh>, Error> {
    let Some(section) = written else {
        return Ok(None);
    };
    let scope = root.section("mesh").at(section.referenced.line());
    let written = &section.value;
    let plaintext = scope.boolean(&written.plaintext, "plaintext", false)?;
    let required = "required; weir-control's xDS listener, as in https://weir-control:18000";
    let control = (&written.control, "control");
    let (control, is_https) = remote::url(control, required, plaintext, &scope)?;
    let files = remote::Files {
        authority: &written.authority,
        certificate: &written.certificate,
        key: &written.key,
    };
    let mesh = Mesh {
        control,
        trust: files.read(is_https, "control", &scope)?,
        cluster: cluster(&written.cluster, &scope)?,
        host: scope.host_address(&written.host, "host")?,
        pressure: pressure(written, &scope)?,
    };
    let try_on = |trust: &Trust| endpoint(&mesh.control, trust);
    files.hold(&mesh.trust, is_https, &scope, try_on)?;
    Ok(Some(mesh))
}

/// As weir-control takes names.
fn cluster(value: &Value, scope: &Scope<'_>) -> Result<String, Error> {
    if value.is_none() {
        return Err(scope.refuse(&None, "cluster", "required; its name in weir-control"));
    }
    let fits = |text: &str| {
        (1..=255).contains(&text.len()) && !text.contains(|c: char| c == '/' || c.is_control())
    };
    scope.text(value, "cluster", "", fits, "1 to 255 bytes without a slash")
}

fn pressure(written: &written::Mesh, scope: &Scope<'_>) -> Result<pressure::Params, Error> {
    let default = pressure::Params::default();
    Ok(pressure::Params {
        delay: scope.duration(&written.delay, "delay", default.delay, ms(0)..=ms(60_000))?,
        hold: scope.duration(&written.hold, "hold", default.hold, ms(0)..=ms(600_000))?,
        stale: scope.duration(
            &written.stale,
            "stale",
            default.stale,
            ms(100)..=ms(600_000),
        )?,
    })
}
