// SPDX-License-Identifier: Apache-2.0
//! A weir-control with TLS of its own, which sidecars reach over a static cluster instead of the mesh.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::control::{self, Control};
use crate::mesh::Mesh;
use crate::network::Place;
use crate::{HOSTS, sidecar};

/// Its process, and Consul's name of the callers that use it.
const CONTROL: &str = "weir-control-tls";
const CALLER: &str = "static-caller";
/// The project's own, which users copy.
const CLUSTER: &str = include_str!("../../../../envoy-config/consul/weir-control-cluster.json");
/// Its name.
const NAME: &str = "weir-control";

/// PEM files by which weir-control, whose name is `weir-control`, and a sidecar know each other.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// Of the authority of both.
    pub authority: PathBuf,
    /// weir-control's certificate and key.
    pub control: (PathBuf, PathBuf),
    /// The sidecar's certificate and key.
    pub sidecar: (PathBuf, PathBuf),
}

impl Mesh {
    /// A second weir-control, outside of the mesh and with TLS of its own, and a caller of another service whose
    /// sidecar asks it.
    ///
    /// # Errors
    /// A process could not be started, or died.
    pub fn add_static_caller(&mut self, certificates: &Certificates) -> Result<Caller> {
        let control = self.start_static_control(certificates)?;
        self.write_caller(CALLER, NAME)?;
        self.consul.intend(CALLER, HOSTS, true)?;
        let cluster = cluster(&control, certificates)?.to_string();
        let change = |service: &mut Value| {
            service["Connect"]["SidecarService"]["Proxy"]["Config"] =
                json!({"envoy_extra_static_clusters_json": cluster});
        };
        let caller = self.start_caller(CALLER, change)?;
        sidecar::wait(&mut self.processes, &caller.name, caller.admin)?;
        self.describe()?;
        Ok(caller)
    }

    fn start_static_control(&mut self, certificates: &Certificates) -> Result<Control> {
        let place = Place::loopback();
        let control = Control {
            xds: place.at(self.ports.next()?),
            admin: place.at(self.ports.next()?),
            // It has none.
            sidecar: place.at(0),
        };
        let mut config = control::config(&control, self.consul.http(), &self.plan);
        let (certificate, key) = &certificates.control;
        config["xds"]["tls"] =
            json!({"certificate": certificate, "key": key, "client_ca": certificates.authority});
        let file = self.folder.join(format!("{CONTROL}.yaml"));
        control::write(&file, &config)?;
        let command = control::command(&self.programs.control, &file);
        self.processes.start(CONTROL, command)?;
        Ok(control)
    }

    /// Ends what [`Self::add_static_caller`] has started.
    ///
    /// # Errors
    /// There is none, or something refuses.
    pub fn remove_static_caller(&mut self, caller: &str) -> Result<()> {
        self.remove_caller(caller)?;
        self.processes.stop(CONTROL)
    }
}

/// The project's cluster with another address and other files.
fn cluster(control: &Control, certificates: &Certificates) -> Result<Value> {
    let mut cluster: Value = serde_json::from_str(CLUSTER)?;
    let tls = "/transport_socket/typed_config/common_tls_context";
    let address = "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address";
    let (certificate, key) = &certificates.sidecar;
    let changes = [
        (
            format!("{tls}/tls_certificates/0/certificate_chain/filename"),
            json!(certificate),
        ),
        (
            format!("{tls}/tls_certificates/0/private_key/filename"),
            json!(key),
        ),
        (
            format!("{tls}/validation_context/trusted_ca/filename"),
            json!(certificates.authority),
        ),
        (format!("{address}/address"), json!(control.xds.ip())),
        (format!("{address}/port_value"), json!(control.xds.port())),
    ];
    for (place, value) in changes {
        let old = cluster.pointer_mut(&place);
        *old.with_context(|| format!("weir-control-cluster.json has no {place}"))? = value;
    }
    Ok(cluster)
}
