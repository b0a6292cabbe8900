// SPDX-License-Identifier: Apache-2.0
//! weir-control, and the service's host there.

use std::net::IpAddr;

use hyper::Uri;
use serde_saphyr::Spanned;
use weir_settings::{Error, Scope, Value};

use super::{ms, written};
use crate::config::Mesh;
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
    let (control, is_https) = control(&written.control, plaintext, &scope)?;
    let files = [
        (&written.authority, "authority"),
        (&written.certificate, "certificate"),
        (&written.key, "key"),
    ];
    if !is_https && let Some((value, field)) = files.iter().find(|(value, _)| value.is_some()) {
        return Err(scope.refuse(value, field, "only an https:// control reads it"));
    }
    let authority = pem(&written.authority, "authority", "CERTIFICATE", &scope)?;
    let certificate = pem(&written.certificate, "certificate", "CERTIFICATE", &scope)?;
    let key = pem(&written.key, "key", "PRIVATE KEY", &scope)?;
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) => {
            let reason = "required with certificate; the name of a PEM file";
            return Err(scope.refuse(&None, "key", reason));
        }
        (None, Some(_)) => {
            let reason = "required with key; the name of a PEM file";
            return Err(scope.refuse(&None, "certificate", reason));
        }
    };
    let mesh = Mesh {
        control,
        authority,
        identity,
        cluster: cluster(&written.cluster, &scope)?,
        host: scope.host_address(&written.host, "host")?,
        pressure: pressure(written, &scope)?,
    };
    if is_https && mesh.authority.is_none() {
        let reason = "required with https://; the name of a PEM file";
        return Err(scope.refuse(&None, "authority", reason));
    }
    // What the library says of the files.
    let anonymous = Mesh {
        identity: None,
        ..mesh.clone()
    };
    endpoint(&anonymous).map_err(|why| scope.refuse(&written.authority, "authority", why))?;
    endpoint(&mesh).map_err(|why| scope.refuse(&written.certificate, "certificate", why))?;
    Ok(Some(mesh))
}

/// `scheme://host:port`, and whether that is https.
fn control(value: &Value, plaintext: bool, scope: &Scope<'_>) -> Result<(String, bool), Error> {
    scope.note("control", "URL", None, None);
    let refuse = |reason: String| scope.refuse(value, "control", reason);
    let Some(text) = value else {
        let reason = "required; weir-control's xDS listener, as in https://weir-control:18000";
        return Err(refuse(reason.to_owned()));
    };
    let text = text.value.as_str();
    let shape = || {
        refuse(format!(
            "{text:?} is not https://name:port or http://ip:port"
        ))
    };
    let uri: Uri = text.parse().map_err(|_| shape())?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(shape());
    };
    let is_whole = uri.path_and_query().is_none_or(|path| path == "/");
    let has_port =
        authority.port_u16().is_some_and(|port| port > 0) && !authority.host().is_empty();
    if !has_port || !is_whole || authority.as_str().contains('@') || text.contains('#') {
        return Err(shape());
    }
    match scheme {
        "https" => {}
        "http" if plaintext || is_loopback(authority.host()) => {}
        "http" => {
            let reason = "not loopback: https:// is required, or plaintext: true if the network is protected by other means";
            return Err(refuse(reason.to_owned()));
        }
        _ => return Err(shape()),
    }
    Ok((format!("{scheme}://{authority}"), scheme == "https"))
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// The contents of a file, whose path is relative to the configuration file's folder.
fn pem(
    value: &Value,
    field: &str,
    label: &str,
    scope: &Scope<'_>,
) -> Result<Option<Vec<u8>>, Error> {
    scope.note(field, "path", None, None);
    let folder = scope.file().parent();
    scope.parse(value, field, None, |text| {
        let path = folder.map_or_else(|| text.into(), |folder| folder.join(text));
        let bytes =
            weir_settings::read(&path).map_err(|error| format!("cannot read {text}: {error}"))?;
        let contents = String::from_utf8_lossy(&bytes);
        let is = |line: &str| line.starts_with("-----BEGIN") && line.contains(label);
        match contents.lines().any(is) {
            true => Ok(Some(bytes)),
            false => Err(format!("{text} has no {label} in PEM")),
        }
    })
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
