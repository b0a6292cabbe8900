// SPDX-License-Identifier: Apache-2.0
//! The command line of `weirctl consul`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use weir_consul::Upstream;

/// What to do in Consul.
#[derive(Debug, Args)]
pub struct Consul {
    /// What to do
    #[command(subcommand)]
    pub command: ConsulCommand,
}

/// What to do in Consul.
#[derive(Debug, Subcommand)]
pub enum ConsulCommand {
    /// Write the configuration entries; exit code 1 if one is refused, or has no effect
    ///
    /// What is given is the whole of Weir's share in the callers' entries: a service that is left out goes from there.
    /// Whatever else stands in an entry stays. Where one entry cannot be merged without loss, none is written; where Consul
    /// refuses one, those before it are put back, but for what somebody else has changed since.
    #[command(after_help = APPLY)]
    Apply(Apply),
    /// Verify the entries and what stands beside them, line by line; exit code 1 if something does not hold
    ///
    /// The same options as of `apply`, for what it would write. Nothing is changed.
    #[command(after_help = CHECK)]
    Check(Check),
    /// Take out what `apply` has written, and nothing else
    ///
    /// What the services and weir-control need stays as long as other callers have it. A caller that chooses for a
    /// service that is not named is refused: name all of its services, or `apply` with those that are left.
    #[command(after_help = REMOVE)]
    Remove(Remove),
    /// Print the registration of an instance with its sidecar, for PUT /v1/agent/service/register
    #[command(after_help = "Example: weirctl consul service host --help")]
    Service(Service),
}

const APPLY: &str = "Examples:
  weirctl consul apply --service rules --caller web --module /etc/weir/weir_filter.wasm --dry-run
  weirctl consul apply --service rules,search --caller web,mobile --module http://files/weir_filter.wasm \\
    --module-service files --module-sha256 \"$(sha256sum < weir_filter.wasm | cut -c1-64)\" --trust any";
const CHECK: &str = "Example: weirctl consul check --service rules --caller web --module /etc/weir/weir_filter.wasm";
const HOST: &str = "Example: weirctl consul service host --id rules-1 --name rules --address 10.0.0.11 --sidecar-port 21000 --port 9001 |
  curl -fsS -H \"X-Consul-Token: $CONSUL_HTTP_TOKEN\" -X PUT --data @- 127.0.0.1:8500/v1/agent/service/register";
const CONTROL: &str = "Example: weirctl consul service control --id weir-control --address 10.0.0.5 --sidecar-port 21000";
const CALLER: &str = "Examples: weirctl consul service caller --id web-1 --name web --address 10.0.0.21 --sidecar-port 21000 \\
  --upstream rules=9100,weir-control=9101
  A front for other data centres:
  weirctl consul service caller --id rules-front-1 --name rules-front --address 10.0.0.9 --sidecar-port 21000 \\
  --upstream rules=9100,weir-control=9101 --front 9100";
const REMOVE: &str = "Example: weirctl consul remove --service rules --caller web";

/// What is to stand there.
#[derive(Debug, Args)]
pub struct Apply {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub names: Names,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub filter: Filter,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub change: Change,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub server: Server,
}

/// What should stand there.
#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub names: Names,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub filter: Filter,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub server: Server,
}

/// What is to go.
#[derive(Debug, Args)]
pub struct Remove {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub names: Names,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub change: Change,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub server: Server,
}

/// Consul's names.
#[derive(Debug, Args)]
pub struct Names {
    /// Service whose hosts are chosen, and the cluster's name in weir-control; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub service: Vec<String>,
    /// Service whose sidecars choose; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub caller: Vec<String>,
    /// weir-control's service
    #[arg(long, value_name = "NAME", default_value = "weir-control")]
    pub control_service: String,
    /// weir-control is no service of the mesh: the cluster of it in the sidecars' bootstraps
    #[arg(long, value_name = "NAME", conflicts_with = "control_service")]
    pub control_cluster: Option<String>,
}

/// The filter.
#[derive(Debug, Args)]
pub struct Filter {
    /// Path of weir_filter.wasm on the callers' machines, or its http:// or https:// URL at a service of the mesh
    #[arg(long, value_name = "PATH|URL")]
    pub module: String,
    /// Of a URL: the service that has it, an upstream of every caller
    #[arg(long, value_name = "NAME", requires = "module_sha256")]
    pub module_service: Option<String>,
    /// Of a URL: the module's SHA-256
    #[arg(long, value_name = "HEX", requires = "module_service")]
    pub module_sha256: Option<String>,
    /// Whose key, priority and user headers are believed [default: loopback]
    #[arg(long, value_enum)]
    pub trust: Option<Trust>,
    /// More of the filter's configuration (filters/host-choice/CONFIGURATION.md), in JSON, merged over the rest; clusters by
    /// service
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
}

/// As in the filter's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Everybody's
    Any,
    /// Of callers on loopback
    Loopback,
    /// Of callers with a certificate
    Mtls,
    /// Nobody's
    None,
}

/// How.
#[derive(Debug, Args)]
pub struct Change {
    /// Print what would change and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Replace, or take out, also such parts of Weir's as somebody else has written or changed, and other fields of
    /// intentions that go with their last source
    #[arg(long)]
    pub adopt: bool,
}

/// Consul.
#[derive(Debug, Args)]
pub struct Server {
    /// Consul's API, best in the primary data centre [default: CONSUL_HTTP_ADDR, else http://127.0.0.1:8500]
    #[arg(long, value_name = "URL")]
    pub address: Option<String>,
    /// The data centre of the services [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub datacenter: Option<String>,
    /// A file with the ACL token [default: CONSUL_HTTP_TOKEN_FILE, else the token in CONSUL_HTTP_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificates of the API's authority, in PEM [default: CONSUL_CACERT, else the system's]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// A certificate to show, in PEM [default: CONSUL_CLIENT_CERT]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// Its key, in PEM [default: CONSUL_CLIENT_KEY]
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// Send the token also by http:// to another machine
    #[arg(long)]
    pub plaintext: bool,
}

/// Of which kind.
#[derive(Debug, Args)]
pub struct Service {
    /// Of which kind
    #[command(subcommand)]
    pub kind: ServiceKind,
}

/// Kinds of instances.
#[derive(Debug, Subcommand)]
pub enum ServiceKind {
    /// A host, whose sidecar is as well as its application
    #[command(after_help = HOST)]
    Host(Host),
    /// A weir-control, whose sidecar asks it for signs of life
    #[command(after_help = CONTROL)]
    Control(ControlService),
    /// A caller, with the local ports of its upstreams
    #[command(after_help = CALLER)]
    Caller(CallerService),
}

/// Its sidecar.
#[derive(Debug, Args)]
pub struct Instance {
    /// Of the instance, at its agent
    #[arg(long, value_name = "ID")]
    pub id: String,
    /// Of its machine, where other sidecars connect to
    #[arg(long, value_name = "IP")]
    pub address: IpAddr,
    /// Where other sidecars connect to
    #[arg(long, value_name = "PORT")]
    pub sidecar_port: u16,
}

/// A host.
#[derive(Debug, Args)]
pub struct Host {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub instance: Instance,
    /// Consul's name of the service
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Of the application, requests and metrics
    #[arg(long, value_name = "PORT")]
    pub port: u16,
    /// How much it can do: a core is 1000
    #[arg(long, value_name = "NUMBER")]
    pub millicores: Option<u32>,
    /// Of the node's governor, for Prometheus: meta weir-governor-port
    #[arg(long, value_name = "PORT")]
    pub governor_port: Option<u16>,
}

/// A weir-control.
#[derive(Debug, Args)]
pub struct ControlService {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub instance: Instance,
    /// Consul's name of the service
    #[arg(long, value_name = "NAME", default_value = "weir-control")]
    pub name: String,
    /// Where it listens (xds.listen)
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:18000")]
    pub xds: SocketAddr,
    /// Where its admin pages are (admin.listen), by which Consul checks it; where not on loopback, their port is meta
    /// weir-metrics-port
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:19000")]
    pub admin: SocketAddr,
}

/// A caller.
#[derive(Debug, Args)]
pub struct CallerService {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub instance: Instance,
    /// Consul's name of the service
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// A service, its data centre if that is another one, and the port of 127.0.0.1 where the application reaches it;
    /// repeatable
    #[arg(long, value_name = "NAME[@DATACENTER]=PORT", value_delimiter = ',', required_unless_present = "transparent",
        value_parser = upstream)]
    pub upstream: Vec<Upstream>,
    /// All of the application's connections are led to the sidecar: it reaches services by their virtual addresses
    #[arg(long)]
    pub transparent: bool,
    /// It is a front, without an application: requests of other sidecars are for the upstream at this port
    #[arg(long, value_name = "PORT", requires = "upstream")]
    pub front: Option<u16>,
    /// Of the admin pages of its sidecar's Envoy, for Prometheus: meta weir-envoy-port
    #[arg(long, value_name = "PORT")]
    pub envoy_admin_port: Option<u16>,
    /// weir-control is outside of the mesh: its listener with TLS, as cluster weir-control-static
    #[arg(long, value_name = "IP:PORT", requires_all = ["ca", "certificate", "key"])]
    pub static_control: Option<SocketAddr>,
    /// Its authority's certificate on the sidecar's machine, in PEM
    #[arg(long, value_name = "PATH", requires = "static_control")]
    pub ca: Option<String>,
    /// The sidecar's certificate there, in PEM
    #[arg(long, value_name = "PATH", requires = "static_control")]
    pub certificate: Option<String>,
    /// The sidecar's key there, in PEM
    #[arg(long, value_name = "PATH", requires = "static_control")]
    pub key: Option<String>,
}

fn upstream(text: &str) -> Result<Upstream, String> {
    let parsed = text.split_once('=').and_then(|(name, port)| {
        let (service, datacenter) = match name.split_once('@') {
            Some((_, "")) => return None,
            Some((service, datacenter)) => (service, Some(datacenter.to_owned())),
            None => (name, None),
        };
        let port = port.parse().ok()?;
        (!service.is_empty()).then(|| Upstream {
            datacenter,
            ..Upstream::new(service, port)
        })
    });
    parsed.ok_or_else(|| {
        "write a service and a port, such as rules=9100 or rules@dc2=9100".to_owned()
    })
}
