// SPDX-License-Identifier: Apache-2.0
//! The command line of `weirctl consul`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

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
    /// Whatever else stands in an entry stays. Where one entry cannot be merged without loss, none is written; if somebody
    /// changes one meanwhile, those that were written are put back.
    #[command(after_help = APPLY)]
    Apply(Apply),
    /// Verify the entries and what stands beside them, line by line; exit code 1 if something does not hold
    ///
    /// The same options as of `apply`, for what it would write. Nothing is changed.
    #[command(after_help = CHECK)]
    Check(Check),
    /// Take out what `apply` has written, and nothing else
    ///
    /// What the services and weir-control need stays as long as other callers have it.
    #[command(after_help = REMOVE)]
    Remove(Remove),
}

const APPLY: &str = "Examples:
  weirctl consul apply --service rules --caller web --module /etc/weir/weir_filter.wasm --dry-run
  weirctl consul apply --service rules,search --caller web,mobile --module http://files/weir_filter.wasm \\
    --module-service files --module-sha256 \"$(sha256sum < weir_filter.wasm | cut -c1-64)\" --trust any";
const CHECK: &str = "Example: weirctl consul check --service rules --caller web --module /etc/weir/weir_filter.wasm";
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
    /// Replace, or take out, also such parts of Weir's as somebody else has written or changed
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
