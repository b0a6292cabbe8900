// SPDX-License-Identifier: Apache-2.0
//! A second datacenter, whose callers have their hosts in the first.
//!
//! ```text
//!  dc2: far-caller's Envoy ────────────────────────────────┬──> rules-2's Envoy
//!              └──> gateway (dc2) ──> gateway (dc1) ───────┤
//!                                          └──> rules-front's Envoy
//! ```

use std::net::SocketAddr;

use anyhow::Result;
use serde_json::{Value, json};
use weir_consul::{Calls, Sidecar, Upstream};

use crate::caller::Caller;
use crate::consul::Consul;
use crate::mesh::Mesh;
use crate::network::Place;
use crate::{CONTROL, DATACENTER, FAR_CALLERS, FRONTS, HOSTS, sidecar};

/// A caller in another datacenter, where its filter chooses among the hosts of this one.
#[derive(Debug, Clone)]
pub struct Far {
    /// `outbound` is for the hosts themselves.
    pub caller: Caller,
    /// Where requests for the front are sent.
    pub front: SocketAddr,
}

impl Mesh {
    /// Another datacenter with a caller, which reaches this one directly; mesh gateways in both; and a front in this
    /// one, by which callers that know no hosts have them chosen.
    ///
    /// # Errors
    /// A process could not be started, or died.
    pub fn add_datacenter(&mut self, name: &str) -> Result<Far> {
        let consul = self
            .consul
            .join(&mut self.processes, &mut self.ports, name)?;
        let control = || weir_consul::Control::Service(CONTROL.to_owned());
        for service in [FAR_CALLERS, FRONTS] {
            self.let_choose(service, control(), Value::Null)?;
        }
        self.consul.intend(FAR_CALLERS, FRONTS, true)?;
        self.start_gateway(&self.consul.clone(), DATACENTER)?;
        self.start_gateway(&consul, name)?;
        self.start_front()?;
        let far = self.start_far(&consul)?;
        self.describe()?;
        Ok(far)
    }

    /// Has sidecars reach other datacenters through the mesh gateways of both. They are told by and by.
    ///
    /// # Errors
    /// Consul says no.
    pub fn reach_through_gateways(&self) -> Result<()> {
        // Not at the upstream: it would have a cluster of another name.
        let entry =
            json!({"Kind": "proxy-defaults", "Name": "global", "MeshGateway": {"Mode": "local"}});
        self.consul.write("gateways.json", &entry.to_string())
    }

    fn start_gateway(&mut self, consul: &Consul, datacenter: &str) -> Result<()> {
        let place = Place::loopback();
        let id = format!("gateway-{datacenter}");
        let (address, admin) = (place.at(self.ports.take()?), place.at(self.ports.take()?));
        let at = json!({"Address": address.ip(), "Port": address.port()});
        consul.register(&json!({
            "ID": id, "Kind": "mesh-gateway", "Name": "mesh-gateway", "Address": address.ip(), "Port": address.port(),
            "TaggedAddresses": {"lan": at, "wan": at},
            "Check": {"TCP": address, "Interval": "1s"},
        }))?;
        let bootstrap = consul.gateway_bootstrap(&id, &place, admin.port())?;
        let file = self.sidecars.write(&id, &bootstrap)?;
        let command = self.sidecars.command(&file, 1);
        self.processes.start(&sidecar::name(&id), command)?;
        sidecar::wait(&mut self.processes, &id, admin)
    }

    fn start_front(&mut self) -> Result<()> {
        let place = Place::loopback();
        let sidecar = Sidecar {
            id: format!("{FRONTS}-1"),
            service: FRONTS.to_owned(),
            address: place.address,
            port: self.ports.take()?,
        };
        let upstreams = [
            Upstream::new(HOSTS, self.ports.take()?),
            Upstream::new(CONTROL, self.ports.take()?),
        ];
        let calls = Calls {
            upstreams: &upstreams,
            front: Some(upstreams[0].port),
            ..Calls::default()
        };
        self.consul.register(&sidecar.caller(&calls))?;
        let consul = self.consul.clone();
        let admin = self.start_sidecar(&consul, &sidecar.id)?;
        let front = Caller {
            name: sidecar.id,
            outbound: place.at(upstreams[0].port),
            admin,
            namespace: None,
        };
        self.wait_until_informed(&front)
    }

    fn start_far(&mut self, consul: &Consul) -> Result<Far> {
        let place = Place::loopback();
        let sidecar = Sidecar {
            id: format!("{FAR_CALLERS}-1"),
            service: FAR_CALLERS.to_owned(),
            address: place.address,
            port: self.ports.take()?,
        };
        let mut upstreams = Vec::new();
        for service in [HOSTS, CONTROL, FRONTS] {
            upstreams.push(Upstream {
                datacenter: Some(DATACENTER.to_owned()),
                ..Upstream::new(service, self.ports.take()?)
            });
        }
        let calls = Calls {
            upstreams: &upstreams,
            ..Calls::default()
        };
        consul.register(&sidecar.caller(&calls))?;
        let far = Far {
            front: place.at(upstreams[2].port),
            caller: Caller {
                outbound: place.at(upstreams[0].port),
                admin: self.start_sidecar(consul, &sidecar.id)?,
                name: sidecar.id,
                namespace: None,
            },
        };
        self.callers.push(far.caller.clone());
        self.wait_until_informed(&far.caller)?;
        Ok(far)
    }

    /// Starts the sidecar of a registered service, and returns where its admin pages are.
    fn start_sidecar(&mut self, consul: &Consul, id: &str) -> Result<SocketAddr> {
        let place = Place::loopback();
        let admin = place.at(self.ports.take()?);
        let file = self.sidecars.bootstrap(consul, id, &place, admin.port())?;
        let command = self.sidecars.command(&file, self.plan.caller_threads);
        self.processes.start(&sidecar::name(id), command)?;
        sidecar::wait(&mut self.processes, id, admin)?;
        Ok(admin)
    }
}
