// SPDX-License-Identifier: Apache-2.0
//! How Kubernetes is asked for hosts.

use weir_settings::{Scope, Value};

use super::dns::port;
use super::kubeconfig::kubeconfig;
use super::{Reader, beside};
use crate::config::{Access, Backend, Error, Kubernetes, ServicePort, written};

/// Of a namespace, a service and a port's name (RFC 1123).
const LONGEST_LABEL: usize = 63;

pub(super) fn kubernetes(
    cluster: &str,
    written: &written::Kubernetes,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Kubernetes, Error> {
    let label = |value: &Value, field: &str, default: &str| label(value, field, default, scope);
    let namespace = label(&written.namespace, "namespace", "")?;
    if namespace.is_empty() {
        let reason = "required; where it is";
        return Err(scope.refuse(&None, "namespace", reason));
    }
    Ok(Kubernetes {
        namespace,
        backend: backend(cluster, written, scope)?,
        metrics_port: port(&written.metrics_port, "metrics_port", scope)?,
        access: access(&written.kubeconfig, scope, reader)?,
    })
}

fn backend(
    cluster: &str,
    written: &written::Kubernetes,
    scope: &Scope<'_>,
) -> Result<Backend, Error> {
    let pool = label(&written.inference_pool, "inference_pool", "", scope)?;
    if !pool.is_empty() {
        let fields = [(&written.service, "service"), (&written.port, "port")];
        return match fields.into_iter().find(|(value, _)| value.is_some()) {
            None => Ok(Backend::Pool(pool)),
            Some((value, field)) => {
                let reason = "an InferencePool has none; leave it out, or inference_pool";
                Err(scope.refuse(value, field, reason))
            }
        };
    }
    if written.service.is_none() && !is_label(cluster) {
        let reason = format!("required: {cluster:?} is the name of no service");
        return Err(scope.refuse(&None, "service", reason));
    }
    let service = label(&written.service, "service", cluster, scope)?;
    let port = service_port(&written.port, "port", scope)?;
    Ok(Backend::Service(service, port))
}

/// A name in Kubernetes. An empty default: there is none.
pub(super) fn label(
    value: &Value,
    field: &str,
    default: &str,
    scope: &Scope<'_>,
) -> Result<String, Error> {
    let shape = "a name of 1 to 63 lower-case letters, digits and hyphens";
    scope.text(value, field, default, is_label, shape)
}

/// Which of a service's ports.
pub(super) fn service_port(
    value: &Value,
    field: &str,
    scope: &Scope<'_>,
) -> Result<ServicePort, Error> {
    let shape = "a port's name or 1 to 65535";
    scope.note(field, "text", None, Some(shape.to_owned()));
    let Some(text) = value else {
        return Err(scope.refuse(value, field, "required; where the hosts take requests"));
    };
    let text = text.value.as_str();
    match text.parse() {
        Ok(number @ 1..) => Ok(ServicePort::Number(number)),
        // A name has a letter.
        _ if is_label(text) && text.bytes().any(|c| c.is_ascii_lowercase()) => {
            Ok(ServicePort::Named(text.to_owned()))
        }
        _ => Err(scope.refuse(value, field, format!("{text:?} is not {shape}"))),
    }
}

pub(super) fn access(
    value: &Value,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Access, Error> {
    scope.note("kubeconfig", "path", None, None);
    let Some(name) = value else {
        return Ok(Access::Pod);
    };
    let path = beside(scope.file(), &name.value);
    let api = kubeconfig(&path, reader);
    let api = api.map_err(|why| scope.refuse(value, "kubeconfig", why))?;
    Ok(Access::Written(api))
}

fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=LONGEST_LABEL).contains(&text.len())
        && text.bytes().all(|c| inner(c) || c == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}
