// SPDX-License-Identifier: Apache-2.0
//! How a replica finds the others.

use std::net::SocketAddr;
use std::time::Duration;

use weir_settings::Scope;

use super::kubernetes::{access, label};
use super::server::{Fields, identity, server};
use super::{Reader, consul, pem};
use crate::config::replicas::{LONGEST_LEASE, Lease, Lock, Replicas, Session};
use crate::config::{Error, Tls, Xds, show_duration, written};
use crate::tls::peer::{self, PeerTls};

/// Consul's own limits (developer.hashicorp.com/consul/api-docs/session).
const SHORTEST_TTL: Duration = Duration::from_secs(10);
const LONGEST_TTL: Duration = Duration::from_secs(86_400);
/// Of a Lease: six renewals, of which two may be late, are still half a second apart.
const SHORTEST_LEASE: Duration = Duration::from_secs(5);
/// As Kubernetes' own programs have it.
const LEASE: Duration = Duration::from_secs(15);
/// A pod's own address, where its manifest writes it there (`fieldRef: status.podIP`).
const POD_IP: &str = "POD_IP";
/// Of Consul's keys.
const LONGEST_KEY: usize = 512;
/// As a node's id on a discovery stream, with what stands before it.
const LONGEST_NAME: usize = 256;
/// What the certificates of weir-control are for, also in envoy-config.
const SERVER_NAME: &str = "weir-control";

pub(super) fn replicas(
    written: &written::Replicas,
    Xds { listen, tls: xds }: &Xds,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Replicas, Error> {
    let xds = xds.as_ref();
    let is_name = |text: &str| {
        (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic())
    };
    let lock = match &written.lease {
        None => Lock::Consul(session(written, scope, reader)?),
        Some(section) => {
            let fields = [(&written.key, "key"), (&written.session_ttl, "session_ttl")];
            let other = fields.into_iter().find(|(value, _)| value.is_some());
            if let Some((value, field)) = other {
                return Err(scope.refuse(
                    value,
                    field,
                    "only a lock in Consul has it; leave it out beside lease",
                ));
            }
            if written.consul.is_some() {
                return Err(scope.refuse(
                    &None,
                    "consul",
                    "the lock is in Consul or is a lease: leave one out",
                ));
            }
            let scope = scope.section("lease").at(section.referenced.line());
            Lock::Lease(lease(&section.value, &scope, reader)?)
        }
    };
    let address = match (&written.address, &lock) {
        (None, Lock::Lease(_)) => {
            let own = std::env::var(POD_IP).ok().and_then(|ip| ip.parse().ok());
            own.map(|ip| SocketAddr::new(ip, listen.port()).to_string())
        }
        _ => None,
    };
    if written.address.is_none() && address.is_none() {
        let reason = "required; host:port where the other replicas reach xds.listen";
        let reason = match lock {
            Lock::Consul(_) => reason.to_owned(),
            Lock::Lease(_) => format!("{reason}, or the environment's {POD_IP}"),
        };
        return Err(scope.refuse(&None, "address", reason));
    }
    let address = match address {
        Some(address) => address,
        None => scope.text(&written.address, "address", "", is_address, "host:port")?,
    };
    let own = nix::unistd::gethostname().ok();
    let own = own.and_then(|name| name.into_string().ok());
    let name = scope.text(
        &written.name,
        "name",
        "",
        is_name,
        "a name of 1 to 256 visible ASCII characters",
    )?;
    let name = match name.is_empty() {
        true => own.unwrap_or_default(),
        false => name,
    };
    Ok(Replicas {
        lock,
        address,
        name,
        tls: peer_tls(written, xds, scope, reader)?,
    })
}

fn session(
    written: &written::Replicas,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Session, Error> {
    let is_key = |text: &str| {
        (1..=LONGEST_KEY).contains(&text.len())
            && !text.starts_with('/')
            && text.chars().all(|c| c.is_ascii_graphic())
    };
    let shape =
        "the name of a key, of 1 to 512 bytes, without spaces and not beginning with a slash";
    let key = scope.text(&written.key, "key", "weir/leader", is_key, shape)?;
    let ttl = scope.duration(
        &written.session_ttl,
        "session_ttl",
        SHORTEST_TTL,
        SHORTEST_TTL..=LONGEST_TTL,
    )?;
    let (consul, token) = consul_server(written, scope, reader)?;
    Ok(Session {
        consul,
        token,
        key,
        ttl,
    })
}

fn lease(written: &written::Lease, scope: &Scope<'_>, reader: &mut Reader) -> Result<Lease, Error> {
    let namespace = label(&written.namespace, "namespace", "", scope)?;
    if namespace.is_empty() {
        let reason = "required; where the Lease is";
        return Err(scope.refuse(&None, "namespace", reason));
    }
    let range = SHORTEST_LEASE..=LONGEST_LEASE;
    let duration = scope.duration(&written.duration, "duration", LEASE, range)?;
    if duration.subsec_nanos() > 0 {
        let reason = format!("{} is not in whole seconds", show_duration(duration));
        return Err(scope.refuse(&written.duration, "duration", reason));
    }
    Ok(Lease {
        namespace,
        name: label(&written.name, "name", "weir-control", scope)?,
        duration,
        access: access(&written.kubeconfig, scope, reader)?,
    })
}

fn consul_server(
    replicas: &written::Replicas,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<(crate::config::Server, Option<crate::config::Token>), Error> {
    let scope = scope.section("consul");
    let (written, scope) = match &replicas.consul {
        Some(section) => (&section.value, scope.at(section.referenced.line())),
        None => (&written::Agent::default(), scope),
    };
    let fields = Fields {
        address: &written.address,
        ca: &written.ca,
        certificate: &written.certificate,
        key: &written.key,
    };
    let server = server(fields, consul::DEFAULT, &scope, reader)?;
    consul::in_the_clear(&server, &written.token_file, &written.plaintext, &scope)?;
    let token = consul::token(&written.token_file, &scope, reader)?;
    Ok((server, token))
}

fn peer_tls(
    written: &written::Replicas,
    xds: Option<&Tls>,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Option<PeerTls>, Error> {
    let written::Replicas {
        ca,
        certificate,
        private_key: key,
        server_name,
        ..
    } = written;
    let fields = [
        (ca, "ca"),
        (certificate, "certificate"),
        (key, "private_key"),
        (server_name, "server_name"),
    ];
    if xds.is_none() {
        return match fields.into_iter().find(|(value, _)| value.is_some()) {
            None => Ok(None),
            Some((value, field)) => {
                Err(scope.refuse(value, field, "only replicas with xds.tls read it"))
            }
        };
    }
    let authority = pem(ca, "ca", "CERTIFICATE", scope, reader)?;
    let required =
        "required with xds.tls; the PEM file of the authority of the others' certificates";
    let authority = authority.ok_or_else(|| scope.refuse(&None, "ca", required))?;
    let identity = identity(certificate, (key, "private_key"), scope, reader)?;
    if identity.is_none() && xds.is_some_and(|tls| tls.client_ca.is_some()) {
        let reason =
            "required with xds.tls.client_ca; the PEM file that is shown to the other replicas";
        return Err(scope.refuse(&None, "certificate", reason));
    }
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
    let server_name = scope.text(
        server_name,
        "server_name",
        SERVER_NAME,
        is_name,
        "a name of a certificate",
    )?;
    let tls = PeerTls {
        ca: authority,
        identity,
        server_name,
    };
    // What the library says of the files, before any port is bound.
    peer::endpoint("localhost:1", Some(&tls)).map_err(|why| scope.refuse(ca, "ca", why))?;
    Ok(Some(tls))
}

fn is_address(text: &str) -> bool {
    let Ok(uri) = format!("http://{text}").parse::<http::Uri>() else {
        return false;
    };
    let whole = uri.authority().map(http::uri::Authority::as_str) == Some(text);
    whole && !text.contains('@') && uri.port_u16().is_some()
}
