// SPDX-License-Identifier: Apache-2.0
//! An instance of a service with its sidecar, as an agent's API takes it. Checks are of every second: Consul's own of
//! a sidecar is of every ten.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde_json::{Value, json};

use crate::parts::{control_options, document};

/// Envoy's name of a weir-control that is outside of the mesh.
pub const STATIC_CONTROL: &str = "weir-control-static";

/// Consul's name of the mode in which a sidecar takes all of its application's connections.
pub const TRANSPARENT: &str = "transparent";

/// An instance's sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sidecar {
    /// Of the instance, at its agent.
    pub id: String,
    /// Consul's name of the service.
    pub service: String,
    /// Of the machine, where other sidecars connect to.
    pub address: IpAddr,
    /// Where other sidecars connect to.
    pub port: u16,
}

/// What a caller's sidecar has to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calls<'a> {
    /// What its application reaches by ports.
    pub upstreams: &'a [Upstream],
    /// All of its application's connections are led to it: every service that an intention lets it reach is reached by
    /// the service's virtual address.
    pub transparent: bool,
    /// It has no application: requests of other sidecars are for the upstream at this port. So they are chosen for here,
    /// also where their callers know no hosts.
    pub front: Option<u16>,
    /// Where it has tables from, if not from a service of the mesh.
    pub control: Option<&'a StaticCluster>,
    /// The port of its Envoy's admin pages, where Prometheus reaches it.
    pub envoy_admin: Option<u16>,
}

/// A service as an application reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Consul's name of it.
    pub service: String,
    /// Another one than the caller's.
    pub datacenter: Option<String>,
    /// Of the application's side.
    pub port: u16,
}

impl Upstream {
    /// In the caller's own datacenter.
    #[must_use]
    pub fn new(service: &str, port: u16) -> Self {
        Self {
            service: service.to_owned(),
            datacenter: None,
            port,
        }
    }
}

/// How sidecars reach a weir-control that is outside of the mesh. Paths are of the sidecar's machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticCluster {
    /// Of its listener.
    pub address: SocketAddr,
    /// Of its authority, in PEM.
    pub ca: String,
    /// The sidecar's, in PEM.
    pub certificate: String,
    /// The sidecar's, in PEM.
    pub key: String,
}

impl Sidecar {
    /// A host: its application's port, how much it can do, where that is known, and the port of its node's governor,
    /// where Prometheus reaches it.
    #[must_use]
    pub fn host(&self, port: u16, millicores: Option<u32>, governor: Option<u16>) -> Value {
        let address = self.address;
        let mut meta = json!({"weir-metrics-port": port.to_string()});
        if let Some(millicores) = millicores {
            meta["weir-capacity-millicores"] = json!(millicores.to_string());
        }
        if let Some(governor) = governor {
            meta["weir-governor-port"] = json!(governor.to_string());
        }
        let mut service =
            self.service(json!({"LocalServiceAddress": address, "LocalServicePort": port}));
        service["Port"] = json!(port);
        service["Meta"] = meta;
        service["Check"] = tcp("application", SocketAddr::new(address, port));
        // Tags and meta are copied to the sidecar, weights are not.
        service["Connect"]["SidecarService"]["Weights"] = json!({"Passing": 1, "Warning": 1});
        self.alias(service)
    }

    /// A weir-control: its listener and admin pages, where its own sidecar and agent reach them.
    ///
    /// One that hangs accepts connections nevertheless: so its sidecar asks it for signs of life.
    #[must_use]
    pub fn control(&self, xds: SocketAddr, admin: SocketAddr) -> Value {
        let endpoint = endpoint(xds);
        let cluster = json!({
            "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            "name": "local_app",
            "type": "STATIC",
            "connect_timeout": "1s",
            "typed_extension_protocol_options": control_options(),
            "load_assignment": {"cluster_name": "local_app", "endpoints": [endpoint]},
        });
        let mut service = self.service(json!({
            "LocalServiceAddress": xds.ip(),
            "LocalServicePort": xds.port(),
            "Config": {"envoy_local_cluster_json": document(&cluster)},
        }));
        service["Port"] = json!(xds.port());
        // On loopback nobody else could read it.
        if !admin.ip().is_loopback() {
            service["Meta"] = json!({"weir-metrics-port": admin.port().to_string()});
        }
        let ready = format!("http://{admin}/ready");
        service["Check"] =
            json!({"Name": "application", "HTTP": ready, "Interval": "1s", "Timeout": "1s"});
        self.alias(service)
    }

    /// A caller.
    #[must_use]
    pub fn caller(&self, calls: &Calls<'_>) -> Value {
        // Whoever reaches an upstream's port speaks as the caller: it is for the application beside it alone.
        let address = Ipv4Addr::LOCALHOST;
        let upstream = |one: &Upstream| {
            let mut upstream = json!({"DestinationName": one.service, "LocalBindAddress": address, "LocalBindPort": one.port});
            if let Some(datacenter) = &one.datacenter {
                upstream["Datacenter"] = json!(datacenter);
            }
            upstream
        };
        let upstreams: Vec<_> = calls.upstreams.iter().map(upstream).collect();
        let mut proxy = json!({"Upstreams": upstreams});
        if calls.transparent {
            proxy["Mode"] = json!(TRANSPARENT);
        }
        if let Some(port) = calls.front {
            proxy["LocalServiceAddress"] = json!(address);
            proxy["LocalServicePort"] = json!(port);
        }
        if let Some(control) = calls.control {
            let cluster = document(&control.cluster());
            proxy["Config"] = json!({"envoy_extra_static_clusters_json": cluster});
        }
        let mut service = self.service(proxy);
        if let Some(port) = calls.front {
            service["Port"] = json!(port);
        }
        if let Some(envoy) = calls.envoy_admin {
            service["Meta"] = json!({"weir-envoy-port": envoy.to_string()});
        }
        service
    }

    fn service(&self, proxy: Value) -> Value {
        let (address, port) = (self.address, self.port);
        let check = tcp("sidecar", SocketAddr::new(address, port));
        json!({
            "ID": self.id,
            "Name": self.service,
            "Address": address,
            "Connect": {"SidecarService": {
                "Address": address, "Port": port, "Checks": [check], "Proxy": proxy,
            }},
        })
    }

    /// The sidecar is as well as the application.
    fn alias(&self, mut service: Value) -> Value {
        let checks = &mut service["Connect"]["SidecarService"]["Checks"];
        if let Some(checks) = checks.as_array_mut() {
            checks.push(json!({"Name": "application", "AliasService": self.id}));
        }
        service
    }
}

impl StaticCluster {
    fn cluster(&self) -> Value {
        json!({
            "name": STATIC_CONTROL,
            "type": "STATIC",
            "connect_timeout": "1s",
            "typed_extension_protocol_options": control_options(),
            "transport_socket": {
                "name": "envoy.transport_sockets.tls",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
                    "sni": "weir-control",
                    "common_tls_context": {
                        "alpn_protocols": ["h2"],
                        "tls_params": {
                            "tls_minimum_protocol_version": "TLSv1_3",
                            "tls_maximum_protocol_version": "TLSv1_3",
                        },
                        "tls_certificates": [{
                            "certificate_chain": {"filename": self.certificate},
                            "private_key": {"filename": self.key},
                        }],
                        "validation_context": {
                            "trusted_ca": {"filename": self.ca},
                            "match_typed_subject_alt_names": [
                                {"san_type": "DNS", "matcher": {"exact": "weir-control"}},
                            ],
                        },
                    },
                },
            },
            "load_assignment": {"cluster_name": STATIC_CONTROL, "endpoints": [endpoint(self.address)]},
        })
    }
}

fn tcp(name: &str, address: SocketAddr) -> Value {
    json!({"Name": name, "TCP": address, "Interval": "1s", "Timeout": "1s"})
}

fn endpoint(address: SocketAddr) -> Value {
    let address = json!({"address": address.ip(), "port_value": address.port()});
    json!({"lb_endpoints": [{"endpoint": {"address": {"socket_address": address}}}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sidecar() -> Sidecar {
        Sidecar {
            id: "rules-1".into(),
            service: "rules".into(),
            address: [10, 0, 0, 11].into(),
            port: 21_000,
        }
    }

    #[test]
    fn what_an_application_calls_by_is_never_on_the_network() {
        let service = sidecar().caller(&Calls {
            upstreams: &[Upstream::new("rules", 9100)],
            ..Calls::default()
        });
        let sidecar = &service["Connect"]["SidecarService"];
        assert_eq!(sidecar["Address"], "10.0.0.11");
        let upstream = &sidecar["Proxy"]["Upstreams"][0];
        assert_eq!(upstream["LocalBindAddress"], "127.0.0.1");
    }

    #[test]
    fn prometheus_is_told_the_ports_that_no_registration_has() {
        let host = sidecar().host(9001, None, Some(9414));
        assert_eq!(host["Meta"]["weir-governor-port"], "9414");
        let calls = Calls {
            envoy_admin: Some(9901),
            ..Calls::default()
        };
        let caller = sidecar().caller(&calls);
        assert_eq!(caller["Meta"], json!({"weir-envoy-port": "9901"}));
        let xds = ([127, 0, 0, 1], 18_000).into();
        let reached = sidecar().control(xds, ([10, 0, 0, 11], 19_000).into());
        assert_eq!(reached["Meta"], json!({"weir-metrics-port": "19000"}));
        let alone = sidecar().control(xds, ([127, 0, 0, 1], 19_000).into());
        assert_eq!(alone.get("Meta"), None);
    }

    #[test]
    fn a_host_tells_where_its_pages_are_and_is_checked_with_its_sidecar() {
        let service = sidecar().host(9001, Some(4000), None);
        let meta = json!({"weir-metrics-port": "9001", "weir-capacity-millicores": "4000"});
        assert_eq!(service["Meta"], meta);
        let sidecar = &service["Connect"]["SidecarService"];
        let checks = json!([
            {"Name": "sidecar", "TCP": "10.0.0.11:21000", "Interval": "1s", "Timeout": "1s"},
            {"Name": "application", "AliasService": "rules-1"},
        ]);
        assert_eq!(sidecar["Checks"], checks);
        assert_eq!(sidecar["Proxy"]["LocalServicePort"], 9001);
    }

    #[test]
    fn a_caller_outside_of_whose_mesh_weir_control_is_has_a_cluster_for_it() {
        let control = StaticCluster {
            address: ([10, 0, 0, 5], 18_000).into(),
            ca: "/ca.pem".into(),
            certificate: "/a.pem".into(),
            key: "/a.key".into(),
        };
        let service = sidecar().caller(&Calls {
            upstreams: &[Upstream::new("rules", 9100)],
            control: Some(&control),
            ..Calls::default()
        });
        let proxy = &service["Connect"]["SidecarService"]["Proxy"];
        assert_eq!(proxy["Upstreams"][0]["LocalBindPort"], 9100);
        let cluster = proxy["Config"]["envoy_extra_static_clusters_json"].as_str();
        let cluster: Value = serde_json::from_str(cluster.unwrap()).unwrap();
        assert_eq!(cluster["name"], STATIC_CONTROL);
        let port = "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/port_value";
        assert_eq!(cluster.pointer(port), Some(&json!(18_000)));
    }

    #[test]
    fn a_fronts_application_is_its_own_upstream_which_the_network_does_not_reach() {
        let service = sidecar().caller(&Calls {
            upstreams: &[Upstream::new("rules", 9100)],
            front: Some(9100),
            ..Calls::default()
        });
        let proxy = &service["Connect"]["SidecarService"]["Proxy"];
        assert_eq!(
            (&service["Port"], &proxy["LocalServicePort"]),
            (&json!(9100), &json!(9100))
        );
        assert_eq!(proxy["LocalServiceAddress"], "127.0.0.1");
        assert_eq!(proxy["Upstreams"][0]["LocalBindAddress"], "127.0.0.1");
    }

    #[test]
    fn an_upstream_of_another_datacenter_says_so() {
        let far = Upstream {
            datacenter: Some("dc2".into()),
            ..Upstream::new("rules", 9100)
        };
        let service = sidecar().caller(&Calls {
            upstreams: &[far],
            ..Calls::default()
        });
        let upstream = &service["Connect"]["SidecarService"]["Proxy"]["Upstreams"][0];
        assert_eq!(upstream["Datacenter"], "dc2");
    }
}
