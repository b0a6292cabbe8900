// SPDX-License-Identifier: Apache-2.0
//! A server that a source asks by HTTP.

use rustls::pki_types::ServerName;
use weir_settings::{Scope, Value};

use super::{Reader, pem};
use crate::client::Client;
use crate::config::{Error, HostTls, Server, written};

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
    if address
        .as_ref()
        .is_some_and(|text| text.value.contains('@'))
    {
        // Not shown: it may have a password.
        let reason = "has a user or a password in it (@), which is not read; see the fields for tokens and certificates";
        return Err(scope.refuse(address, "address", reason));
    }
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
    server.identity = identity(certificate, (key, "key"), scope, reader)?;
    Client::new(&server).map_err(|why| scope.refuse(certificate, "certificate", why))?;
    Ok(server)
}

/// Contents of two PEM files: certificate and key.
type Pair = (Vec<u8>, Vec<u8>);

/// Certificate and key that are shown to whoever is asked; the field of the key has this name.
pub(super) fn identity(
    certificate: &Value,
    (key, key_field): (&Value, &str),
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Option<Pair>, Error> {
    let shown = (
        pem(certificate, "certificate", "CERTIFICATE", scope, reader)?,
        pem(key, key_field, "PRIVATE KEY", scope, reader)?,
    );
    match shown {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(scope.refuse(key, key_field, "required with certificate")),
        (None, Some(_)) => {
            let reason = format!("required with {key_field}");
            Err(scope.refuse(certificate, "certificate", reason))
        }
    }
}

/// How hosts are asked by HTTPS.
pub(super) fn host_tls(
    written: &written::HostTls,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<HostTls, Error> {
    let written::HostTls {
        ca,
        certificate,
        key,
        server_name,
    } = written;
    let is_name = |text: &str| {
        let is_dns = |name: &ServerName<'_>| matches!(name, ServerName::DnsName(_));
        ServerName::try_from(text).as_ref().is_ok_and(is_dns)
    };
    let shape = "a DNS name, as in the hosts' certificates";
    let name = scope.text(server_name, "server_name", "", is_name, shape)?;
    let mut tls = HostTls {
        ca: pem(ca, "ca", "CERTIFICATE", scope, reader)?,
        identity: None,
        server_name: Some(name).filter(|name| !name.is_empty()),
    };
    // What the library says of the files, before any port is bound.
    let says = |tls: &HostTls| Client::of_host(PLACE, tls);
    says(&tls).map_err(|why| scope.refuse(ca, "ca", why))?;
    tls.identity = identity(certificate, (key, "key"), scope, reader)?;
    says(&tls).map_err(|why| scope.refuse(certificate, "certificate", why))?;
    Ok(tls)
}

/// Of no host.
const PLACE: &str = "127.0.0.1:1";

pub(super) fn is_server(text: &str) -> bool {
    let Ok(uri) = text.parse::<http::Uri>() else {
        return false;
    };
    let host = uri.authority().map(http::uri::Authority::as_str);
    matches!(uri.scheme_str(), Some("http" | "https"))
        && host.is_some_and(|host| !host.contains('@'))
        && uri.query().is_none()
        && !text.contains('#')
}
