// SPDX-License-Identifier: Apache-2.0
//! Consul: one server that is also the agent of all services, and its HTTP API.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use weir_consul::{Datacenter, Weir, merge};
use weir_needs::Ports;
use weir_stage::command::Run;
use weir_stage::http::{self, Request};
use weir_stage::processes::Processes;

use crate::DATACENTER;
use crate::network::Place;

/// The agent's name among the processes: all services are registered with it.
pub(crate) const AGENT: &str = "consul";
/// The server's name among the processes. It is another process, as in earnest: a server that is the agent of
/// its sidecars as well tells them, while it is starting, that they have no upstreams.
pub(crate) const SERVER: &str = "consul-server";
/// What users take, and the mesh as well.
const SETTINGS: &str = include_str!("../../../deploy/consul/agent.hcl");
/// An election and a certificate authority; seconds on a busy machine.
const READY: Duration = Duration::from_secs(60);

/// A Consul that serves: one server, one agent.
#[derive(Debug, Clone)]
pub struct Consul {
    program: PathBuf,
    folder: PathBuf,
    datacenter: String,
    http: SocketAddr,
    server: SocketAddr,
    grpc: u16,
    /// Where servers of other datacenters find this one's.
    wan: u16,
    trust_domain: String,
}

impl Consul {
    /// Starts it and waits until it has a leader and a certificate authority. `more` is an address beside
    /// loopback where sidecars reach it.
    pub(crate) fn start(
        processes: &mut Processes,
        program: &Path,
        folder: PathBuf,
        ports: &mut Ports,
        more: Option<Ipv4Addr>,
    ) -> Result<Self> {
        let mut consul = Self {
            program: program.to_owned(),
            datacenter: DATACENTER.to_owned(),
            http: (Ipv4Addr::LOCALHOST, ports.take()?).into(),
            server: (Ipv4Addr::LOCALHOST, ports.take()?).into(),
            grpc: ports.take()?,
            wan: ports.take()?,
            folder,
            trust_domain: String::new(),
        };
        let gossip = ports.take()?;
        let server = json!({
            "server": true,
            "bootstrap_expect": 1,
            "ports": {
                "http": consul.server.port(), "server": ports.take()?, "serf_lan": gossip, "serf_wan": consul.wan, "grpc": -1,
            },
            // The smallest: a server that is alone has nobody to wait for.
            "performance": {"raft_multiplier": 1},
        });
        let command = consul.agent(SERVER, server)?;
        processes.start(SERVER, command)?;
        let clients: Vec<String> = [Ipv4Addr::LOCALHOST]
            .into_iter()
            .chain(more)
            .map(|address| address.to_string())
            .collect();
        let (http, grpc) = (consul.http.port(), consul.grpc);
        let agent = json!({
            "server": false,
            "client_addr": clients.join(" "),
            "ports": {
                "http": http, "grpc": grpc, "server": ports.take()?, "serf_lan": ports.take()?, "serf_wan": -1,
            },
            "retry_join": [format!("127.0.0.1:{gossip}")],
            "retry_interval": "1s",
        });
        let command = consul.agent(AGENT, agent)?;
        processes.start(AGENT, command)?;
        processes.wait_until("Consul's leader and authority", READY, || {
            let leader = consul.get("/v1/status/leader").ok()?;
            leader.as_str().filter(|leader| !leader.is_empty())?;
            consul.trust_domain = consul.authority()?;
            Some(())
        })?;
        Ok(consul)
    }

    /// Starts one without a mesh, for services that only want to be found.
    ///
    /// # Errors
    /// It does not come up.
    pub fn alone(processes: &mut Processes, program: &Path, folder: PathBuf) -> Result<Self> {
        Self::start(
            processes,
            program,
            folder,
            &mut Ports::of_this_process(),
            None,
        )
    }

    /// Starts that of another datacenter, which has its certificates and entries from this one: a server that is the
    /// agent too, as nobody starts it again. Returns when both know each other.
    pub(crate) fn join(
        &self,
        processes: &mut Processes,
        ports: &mut Ports,
        datacenter: &str,
    ) -> Result<Self> {
        let http = (Ipv4Addr::LOCALHOST, ports.take()?).into();
        let mut consul = Self {
            datacenter: datacenter.to_owned(),
            http,
            server: http,
            grpc: ports.take()?,
            wan: ports.take()?,
            ..self.clone()
        };
        let name = format!("{SERVER}-{datacenter}");
        let server = json!({
            "server": true,
            "bootstrap_expect": 1,
            "ports": {
                "http": http.port(), "server": ports.take()?, "serf_lan": ports.take()?, "serf_wan": consul.wan,
                "grpc": consul.grpc,
            },
            "retry_join_wan": [format!("127.0.0.1:{}", self.wan)],
            "retry_interval_wan": "1s",
            "performance": {"raft_multiplier": 1},
        });
        let command = consul.agent(&name, server)?;
        processes.start(&name, command)?;
        let what = format!("the authority of {datacenter}");
        processes.wait_until(&what, READY, || {
            consul.trust_domain = consul.authority()?;
            let path = format!("/v1/catalog/services?dc={datacenter}");
            (consul.trust_domain == self.trust_domain && self.get(&path).is_ok()).then_some(())
        })?;
        Ok(consul)
    }

    /// What runs one of the two. Not `-dev`: that forgets everything when it is started again.
    fn agent(&self, name: &str, mut own: Value) -> Result<Command> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let everywhere = json!({
            "node_name": name,
            "datacenter": self.datacenter,
            "primary_datacenter": DATACENTER,
            "data_dir": folder.join("data"),
            "bind_addr": "127.0.0.1",
            "ports": {"dns": -1, "grpc_tls": -1, "https": -1},
            "peering": {"enabled": false},
            "disable_update_check": true,
            "telemetry": {"prometheus_retention_time": "60s", "disable_hostname": true},
        });
        merge(&mut own, &everywhere);
        let files = [
            ("agent.hcl", SETTINGS.to_owned()),
            ("own.json", serde_json::to_string_pretty(&own)?),
        ];
        let mut command = Command::new(&self.program);
        command.arg("agent");
        for (name, text) in files {
            let file = folder.join(name);
            fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
            command.arg("-config-file").arg(file);
        }
        Ok(command)
    }

    fn authority(&self) -> Option<String> {
        let roots = self.get("/v1/connect/ca/roots").ok()?;
        let domain = roots.get("TrustDomain")?.as_str()?;
        (!domain.is_empty()).then(|| domain.to_owned())
    }

    /// The agent's HTTP API.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// The server's HTTP API.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// The end of every cluster's name.
    #[must_use]
    pub fn trust_domain(&self) -> &str {
        &self.trust_domain
    }

    /// Envoy's name of a service's cluster.
    #[must_use]
    pub fn cluster(&self, service: &str) -> String {
        self.datacenter().cluster(service)
    }

    fn datacenter(&self) -> Datacenter {
        Datacenter {
            name: self.datacenter.clone(),
            trust_domain: self.trust_domain.clone(),
        }
    }

    /// A page of its API.
    ///
    /// # Errors
    /// It does not answer, or not with 200 and JSON.
    pub fn get(&self, path: &str) -> Result<Value> {
        let answer = http::get(self.http, path)?;
        serde_json::from_str(&answer.body).with_context(|| format!("Consul's answer to {path}"))
    }

    /// Whether the server leads, by its own word.
    #[must_use]
    pub fn leads(&self) -> bool {
        http::get(self.server, "/v1/status/leader").is_ok_and(|answer| answer.body.contains(':'))
    }

    /// Tells it something.
    ///
    /// # Errors
    /// It does not answer, or says no and why.
    pub fn put(&self, path: &str, body: &str) -> Result<()> {
        let request = Request {
            method: "PUT",
            path,
            headers: &[("content-type", "application/json")],
            body,
        };
        let answer = http::send(self.http, &request)?;
        ensure!(
            answer.status == "200",
            "Consul says {} to PUT {path}: {}",
            answer.status,
            answer.body
        );
        Ok(())
    }

    /// Registers a service, as its API wants it.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn register(&self, service: &Value) -> Result<()> {
        self.put("/v1/agent/service/register", &service.to_string())
    }

    /// Takes an instance of a service and its sidecar out of the catalog.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn deregister(&self, id: &str) -> Result<()> {
        self.put(&format!("/v1/agent/service/deregister/{id}"), "")
    }

    /// Writes a configuration entry, in HCL or JSON. It is kept in the mesh's folder under `name`.
    ///
    /// # Errors
    /// It is wrong, and how.
    pub fn write(&self, name: &str, entry: &str) -> Result<()> {
        let file = self.folder.join(name);
        fs::write(&file, entry).with_context(|| format!("writing {}", file.display()))?;
        let mut command = self.command();
        command.args(["config", "write"]).arg(&file);
        command.captured().map(drop)
    }

    /// Writes what `weirctl consul apply` would.
    pub(crate) fn apply(&self, weir: &Weir) -> Result<()> {
        for share in weir.shares(&self.datacenter())? {
            let (kind, name) = (share.kind, &share.name);
            let stands = self.get(&format!("/v1/config/{kind}/{name}")).ok();
            let written = share.with(stands.as_ref(), false)?;
            let entry = written.entry.context("an entry")?;
            self.write(&format!("{kind}-{name}.json"), &format!("{entry:#}"))?;
        }
        Ok(())
    }

    /// Every sidecar writes each request that it takes to this file.
    pub(crate) fn write_access_log(&self, file: &Path) -> Result<()> {
        let entry = json!({
            "Kind": "proxy-defaults",
            "Name": "global",
            "AccessLogs": {"Enabled": true, "DisableListenerLogs": true, "Type": "file", "Path": file},
        });
        self.write("access-log.json", &entry.to_string())
    }

    /// Lets a service reach another, or not; what is said of others stays.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn intend(&self, from: &str, to: &str, allowed: bool) -> Result<()> {
        let action = if allowed { "allow" } else { "deny" };
        let path = format!("/v1/connect/intentions/exact?source={from}&destination={to}");
        self.put(&path, &json!({"Action": action}).to_string())
    }

    /// The instances of a service whose sidecars pass their checks, by id and the sidecar's address.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn passing(&self, service: &str) -> Result<Vec<(String, SocketAddr)>> {
        let entries = self.get(&format!("/v1/health/connect/{service}?passing"))?;
        let entries = entries.as_array().context("a list of instances")?;
        let instance = |entry: &Value| {
            let service = entry.get("Service")?;
            let id = service.pointer("/Proxy/DestinationServiceID")?.as_str()?;
            let address = service.get("Address")?.as_str()?;
            let port = service.get("Port")?.as_u64()?;
            Some((id.to_owned(), format!("{address}:{port}").parse().ok()?))
        };
        let instances: Option<Vec<_>> = entries.iter().map(instance).collect();
        instances.with_context(|| format!("an instance of {service} without id or address"))
    }

    /// What the sidecar of a registered service is started with.
    pub(crate) fn bootstrap(&self, id: &str, place: &Place, admin: u16) -> Result<String> {
        self.bootstrap_of(&["-sidecar-for", id], place, admin)
    }

    /// What a registered mesh gateway is started with.
    pub(crate) fn gateway_bootstrap(&self, id: &str, place: &Place, admin: u16) -> Result<String> {
        self.bootstrap_of(&["-gateway", "mesh", "-proxy-id", id], place, admin)
    }

    fn bootstrap_of(&self, which: &[&str], place: &Place, admin: u16) -> Result<String> {
        let grpc = format!("{}:{}", place.gateway(), self.grpc);
        let mut command = self.command();
        command
            .args(["connect", "envoy", "-bootstrap"])
            .args(which)
            .args(["-admin-bind", &place.at(admin).to_string()])
            .args(["-grpc-addr", &grpc]);
        command.captured()
    }

    /// Leads all connections of a namespace to the sidecar in it: those that come, and those that are made there by
    /// others than root, whose the sidecar is.
    pub(crate) fn redirect(&self, id: &str, place: &Place, admin: u16) -> Result<()> {
        let http = SocketAddr::new(place.gateway(), self.http.port());
        let mut command = Command::new(&self.program);
        command
            .env("CONSUL_HTTP_ADDR", http.to_string())
            .args(["connect", "redirect-traffic", "-proxy-uid", "0"])
            .args(["-proxy-id", &format!("{id}-sidecar-proxy")])
            .args(["-exclude-inbound-port", &admin.to_string()]);
        place.command(command).captured().map(drop)
    }

    /// The address by which transparent proxies know a service. Nobody has it.
    pub(crate) fn virtual_address(&self, service: &str) -> Result<SocketAddr> {
        let instances = self.get(&format!("/v1/health/connect/{service}"))?;
        let address = &instances[0]["Service"]["TaggedAddresses"]["consul-virtual"];
        let ip = address["Address"].as_str();
        let ip = ip.with_context(|| format!("{service} has no virtual address"))?;
        let port = address["Port"].as_u64().context("a port")?;
        Ok((ip.parse::<IpAddr>()?, u16::try_from(port)?).into())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("CONSUL_HTTP_ADDR", self.http.to_string());
        command
    }
}
