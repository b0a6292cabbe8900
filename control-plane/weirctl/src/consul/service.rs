// SPDX-License-Identifier: Apache-2.0
//! How an instance is registered.

use serde_json::Value;
use weir_consul::{Calls, Sidecar, StaticCluster};

use crate::flags::consul::{Instance, Service, ServiceKind};

/// What an agent is to be told of it.
#[must_use]
pub fn service(asked: &Service) -> Value {
    match &asked.kind {
        ServiceKind::Host(host) => {
            let sidecar = sidecar(&host.instance, &host.name);
            sidecar.host(host.port, host.millicores, host.governor_port)
        }
        ServiceKind::Control(control) => {
            sidecar(&control.instance, &control.name).control(control.xds, control.admin)
        }
        ServiceKind::Caller(caller) => {
            let path = |path: &Option<String>| path.clone().unwrap_or_default();
            let control = caller.static_control.map(|address| StaticCluster {
                address,
                ca: path(&caller.ca),
                certificate: path(&caller.certificate),
                key: path(&caller.key),
            });
            let sidecar = sidecar(&caller.instance, &caller.name);
            sidecar.caller(&Calls {
                upstreams: &caller.upstream,
                transparent: caller.transparent,
                front: caller.front,
                control: control.as_ref(),
                envoy_admin: caller.envoy_admin_port,
            })
        }
    }
}

fn sidecar(instance: &Instance, service: &str) -> Sidecar {
    Sidecar {
        id: instance.id.clone(),
        service: service.to_owned(),
        address: instance.address,
        port: instance.sidecar_port,
    }
}
