// SPDX-License-Identifier: Apache-2.0
//! Who is asked over the network: the URL, and the files of TLS.

use std::net::IpAddr;
use std::path::PathBuf;

use hyper::Uri;
use weir_settings::{Error, Scope, Value};

use crate::config::Trust;

/// `scheme://host:port`, and whether that is https. `required`: the reason where it is absent.
pub(super) fn url(
    (value, field): (&Value, &str),
    required: &str,
    plaintext: bool,
    scope: &Scope<'_>,
) -> Result<(String, bool), Error> {
    scope.note(field, "URL", None, None);
    let refuse = |reason: String| scope.refuse(value, field, reason);
    let Some(text) = value else {
        return Err(refuse(required.to_owned()));
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

/// As written: names of PEM files.
pub(super) struct Files<'a> {
    pub(super) authority: &'a Value,
    pub(super) certificate: &'a Value,
    pub(super) key: &'a Value,
}

impl Files<'_> {
    /// Their contents. `field` is the URL's, for whoever writes files that nothing reads.
    pub(super) fn read(
        &self,
        is_https: bool,
        field: &str,
        scope: &Scope<'_>,
    ) -> Result<Trust, Error> {
        let files = [
            (self.authority, "authority"),
            (self.certificate, "certificate"),
            (self.key, "key"),
        ];
        if !is_https && let Some((value, name)) = files.iter().find(|(value, _)| value.is_some()) {
            let reason = format!("only an https:// {field} reads it");
            return Err(scope.refuse(value, name, reason));
        }
        let authority = pem(self.authority, "authority", "CERTIFICATE", scope)?;
        let certificate = pem(self.certificate, "certificate", "CERTIFICATE", scope)?;
        let key = pem(self.key, "key", "PRIVATE KEY", scope)?;
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
        let file = |value: &Value| value.as_ref().map(|name| beside(scope, &name.value));
        Ok(Trust {
            authority,
            identity,
            files: [self.authority, self.certificate, self.key].map(file),
        })
    }

    /// Whether they will do; `try_on` is what the library says of them.
    pub(super) fn hold<T>(
        &self,
        trust: &Trust,
        is_https: bool,
        scope: &Scope<'_>,
        try_on: impl Fn(&Trust) -> Result<T, String>,
    ) -> Result<(), Error> {
        // No certificate would be good.
        if is_https && trust.authority.is_none() {
            let reason = "required with https://; the name of a PEM file";
            return Err(scope.refuse(&None, "authority", reason));
        }
        let anonymous = Trust {
            identity: None,
            ..trust.clone()
        };
        try_on(&anonymous).map_err(|why| scope.refuse(self.authority, "authority", why))?;
        try_on(trust).map_err(|why| scope.refuse(self.certificate, "certificate", why))?;
        Ok(())
    }
}

/// Names of files are relative to the configuration file's folder.
fn beside(scope: &Scope<'_>, name: &str) -> PathBuf {
    let folder = scope.file().parent();
    folder.map_or_else(|| name.into(), |folder| folder.join(name))
}

/// The contents of a file.
fn pem(
    value: &Value,
    field: &str,
    label: &str,
    scope: &Scope<'_>,
) -> Result<Option<Vec<u8>>, Error> {
    scope.note(field, "path", None, None);
    scope.parse(value, field, None, |text| {
        let bytes = weir_settings::read(&beside(scope, text))
            .map_err(|error| format!("cannot read {text}: {error}"))?;
        let contents = String::from_utf8_lossy(&bytes);
        let is = |line: &str| line.starts_with("-----BEGIN") && line.contains(label);
        match contents.lines().any(is) {
            true => Ok(Some(bytes)),
            false => Err(format!("{text} has no {label} in PEM")),
        }
    })
}
