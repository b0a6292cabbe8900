// SPDX-License-Identifier: Apache-2.0
//! A server that a source asks by HTTP.

use weir_settings::{Scope, Value};

use super::{Reader, pem};
use crate::config::{Error, Server};
use crate::sources::client::Client;

/// As written.
pub(super) struct Fields<'a> {
    pub(super) address: &'a Value,
    pub(super) ca: &'a Value,
    pub(super) certificate: &'a Value,
    pub(super) key: &'a Value,
}

pub(super) fn server(
    written: Fields<'_>,
    default: &str,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Server, Error> {
    let Fields {
        address,
        ca,
        certificate,
        key,
    } = written;
    let shape = "http://host:port or https://host:port, with or without a path";
    let url = scope.text(address, "address", default, is_server, shape)?;
    let mut server = Server {
        url: url.trim_end_matches('/').to_owned(),
        ca: pem(ca, "ca", "CERTIFICATE", scope, reader)?,
        identity: None,
    };
    for (value, field) in [(ca, "ca"), (certificate, "certificate"), (key, "key")] {
        if value.is_some() && !server.is_secure() {
            return Err(scope.refuse(value, field, "only an https:// address reads it"));
        }
    }
    // What the library says of the files, before any port is bound.
    Client::new(&server).map_err(|why| scope.refuse(ca, "ca", why))?;
    let shown = (
        pem(certificate, "certificate", "CERTIFICATE", scope, reader)?,
        pem(key, "key", "PRIVATE KEY", scope, reader)?,
    );
    server.identity = match shown {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) => return Err(scope.refuse(key, "key", "required with certificate")),
        (None, Some(_)) => {
            return Err(scope.refuse(certificate, "certificate", "required with key"));
        }
    };
    Client::new(&server).map_err(|why| scope.refuse(certificate, "certificate", why))?;
    Ok(server)
}

fn is_server(text: &str) -> bool {
    let Ok(uri) = text.parse::<http::Uri>() else {
        return false;
    };
    let host = uri.authority().map(http::uri::Authority::as_str);
    matches!(uri.scheme_str(), Some("http" | "https"))
        && host.is_some_and(|host| !host.contains('@'))
        && uri.query().is_none()
        && !text.contains('#')
}
