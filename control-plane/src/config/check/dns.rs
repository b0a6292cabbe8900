// SPDX-License-Identifier: Apache-2.0
//! How DNS is asked for hosts.

use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::proto::rr::Name;
use weir_settings::{Scope, Value};

use crate::config::{Dns, Error, written};

pub(super) fn dns(written: &written::Dns, scope: &Scope<'_>) -> Result<Dns, Error> {
    let shape = "a name of labels of at most 63 bytes, 255 in all";
    let name = scope.text(&written.name, "name", "", is_name, shape)?;
    if name.is_empty() {
        let reason = "required; the name whose addresses the hosts have";
        return Err(scope.refuse(&None, "name", reason));
    }
    Ok(Dns {
        name,
        port: port(&written.port, "port", scope)?,
        metrics_port: port(&written.metrics_port, "metrics_port", scope)?,
        server: server(&written.server, scope)?,
        interval: scope.duration(
            &written.interval,
            "interval",
            Duration::from_secs(5),
            Duration::from_millis(100)..=Duration::from_secs(3600),
        )?,
        timeout: scope.duration(
            &written.timeout,
            "timeout",
            Duration::from_secs(5),
            Duration::from_millis(10)..=Duration::from_secs(60),
        )?,
    })
}

fn is_name(text: &str) -> bool {
    Name::from_ascii(text).is_ok_and(|name| !name.is_root())
}

pub(super) fn port(value: &Value, field: &str, scope: &Scope<'_>) -> Result<Option<u16>, Error> {
    let range = "1 to 65535".to_owned();
    scope.note(field, "whole number", None, Some(range));
    scope.parse(value, field, None, |text| match text.parse() {
        Ok(port @ 1..) => Ok(Some(port)),
        _ => Err(format!("{text:?} is no port")),
    })
}

fn server(value: &Value, scope: &Scope<'_>) -> Result<Option<SocketAddr>, Error> {
    scope.note("server", "address", None, None);
    scope.parse(value, "server", None, |text| {
        let address = text.parse().map(Some);
        address.map_err(|_| format!("{text:?} is not ip:port or [ip6]:port"))
    })
}
