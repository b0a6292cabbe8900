// SPDX-License-Identifier: Apache-2.0
//! What was read, before anything is concluded from it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde_json::Value;

use super::dump::Dump;
use super::stats::Stats;
use crate::answers::Tables;
use crate::page::{Address, Page};

/// Between two readings of Envoy's statistics: what grows in it goes wrong now.
const BETWEEN: Duration = Duration::from_secs(1);

/// All that was read, in one go.
#[derive(Debug)]
pub struct Evidence {
    /// By this machine's clock.
    pub now: SystemTime,
    /// In the order in which they were named.
    pub controls: Vec<Asked<Control>>,
    /// In the order in which they were named.
    pub envoys: Vec<Asked<Envoy>>,
}

/// Who was asked, and what came of it.
#[derive(Debug)]
pub struct Asked<T> {
    /// Of its admin interface.
    pub address: Address,
    /// Why it could not be read.
    pub said: Result<T, String>,
}

/// A weir-control.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Control {
    pub tables: Tables,
    /// Why it is not ready.
    pub unready: Option<String>,
    /// Its clock.
    pub date: Option<SystemTime>,
}

/// A caller's Envoy.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Envoy {
    pub node: String,
    /// Its flag `--service-node`.
    pub service_node: Option<String>,
    pub version: String,
    /// `LIVE` once it takes requests.
    pub state: String,
    /// What it was given and refused.
    pub refused: Vec<String>,
    pub connections: Vec<Connections>,
    pub clusters: BTreeMap<String, Upstream>,
    /// By cluster.
    pub hosts: BTreeMap<String, Vec<Endpoint>>,
    /// Most requests at a time, by cluster.
    pub max_requests: BTreeMap<String, u64>,
    pub certificates: Vec<Certificate>,
    /// When a filter that comes separately came last, accepted or not, in Unix milliseconds.
    pub came_unix_ms: BTreeMap<String, u64>,
    pub stats: Stats,
    /// A second earlier.
    pub earlier: Stats,
}

/// How a listener treats requests.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Connections {
    pub listener: String,
    /// Weir's filters, nearly always one.
    pub plugins: Vec<Plugin>,
    /// Filters that come separately, and those of them that have not come.
    pub separate: Vec<String>,
    pub awaited: Vec<String>,
    pub request_timeout: bool,
    pub routes: Vec<Route>,
}

/// Weir's filter.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Plugin {
    pub name: String,
    pub shell: Shell,
    /// Its JSON, or what is wrong with it.
    pub settings: Result<Value, String>,
}

/// What the filter runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// A module of WebAssembly.
    Wasm {
        /// A VM that panicked is replaced.
        reloads: bool,
    },
    /// A dynamic module: it has no VM of Envoy's, and catches its panics.
    Native,
}

#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Route {
    pub clusters: BTreeSet<String>,
    /// The header that names hosts is removed before a host is picked.
    pub drops_destination: bool,
    pub retries: bool,
    /// A retry goes to another host.
    pub skips_tried_hosts: bool,
}

/// A cluster of Envoy's.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Upstream {
    /// Name of its policy.
    pub balances: String,
    /// The policy is `override_host`.
    pub follows: bool,
    /// By the header that Weir writes.
    pub reads_destination: bool,
    pub headers: Vec<String>,
    /// The header goes on to hosts.
    pub keeps_destination: bool,
    pub http2: bool,
    pub tls: bool,
}

#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Endpoint {
    pub address: String,
    pub connections: u64,
    pub failed_connections: u64,
}

#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Certificate {
    pub path: String,
    pub expires: Option<SystemTime>,
}

impl Evidence {
    /// Asks all of them. Whoever does not answer is part of the evidence.
    pub async fn gather(controls: &[Address], envoys: &[Address]) -> Self {
        let (mut asked, mut proxies) = (Vec::new(), Vec::new());
        for address in controls {
            asked.push(Asked::of(address, control(address).await));
        }
        for address in envoys {
            proxies.push(Asked::of(address, envoy(address).await));
        }
        if proxies.iter().any(|asked| asked.said.is_ok()) {
            tokio::time::sleep(BETWEEN).await;
        }
        for asked in &mut proxies {
            if let Ok(envoy) = &mut asked.said
                && let Err(error) = envoy.read_again(&asked.address).await
            {
                asked.said = Err(format!("{error:#}"));
            }
        }
        Self {
            now: SystemTime::now(),
            controls: asked,
            envoys: proxies,
        }
    }

    /// The weir-controls that answered.
    pub(super) fn answering(&self) -> impl Iterator<Item = (&Address, &Control)> {
        let controls = self.controls.iter();
        controls.filter_map(|asked| Some((&asked.address, asked.said.as_ref().ok()?)))
    }
}

impl<T> Asked<T> {
    fn of(address: &Address, said: Result<T>) -> Self {
        Self {
            address: address.clone(),
            said: said.map_err(|error| format!("{error:#}")),
        }
    }
}

async fn control(address: &Address) -> Result<Control> {
    let ready = Page::get(address, "/ready").await?;
    let tables = Page::get(address, "/tables").await?;
    let date = tables.date;
    let tables = serde_json::from_str(&tables.ok()?)
        .context("/tables is not what weir-control says; is this its admin address?")?;
    Ok(Control {
        tables,
        unready: (ready.status != 200).then(|| ready.body.trim().to_owned()),
        date,
    })
}

async fn page(address: &Address, path: &str) -> Result<Value> {
    let text = Page::get(address, path).await?.ok()?;
    serde_json::from_str(&text)
        .with_context(|| format!("{path} is not what Envoy says; is this its admin address?"))
}

async fn envoy(address: &Address) -> Result<Envoy> {
    let info = page(address, "/server_info").await?;
    let config = page(address, "/config_dump").await?;
    let clusters = page(address, "/clusters?format=json").await?;
    let certificates = page(address, "/certs").await?;
    let stats = page(address, STATS).await?;
    Ok(Envoy::parse(
        &info,
        &config,
        &clusters,
        &certificates,
        &stats,
    ))
}

const STATS: &str = "/stats?format=json";

impl Envoy {
    async fn read_again(&mut self, address: &Address) -> Result<()> {
        let stats = Stats::parse(&page(address, STATS).await?);
        self.earlier = std::mem::replace(&mut self.stats, stats);
        Ok(())
    }

    /// By how much this figure has grown between the two readings.
    pub(super) fn growth(&self, figure: impl Fn(&Stats) -> u64) -> u64 {
        figure(&self.stats).saturating_sub(figure(&self.earlier))
    }

    /// From the pages `/server_info`, `/config_dump`, `/clusters?format=json`, `/certs`, `/stats?format=json`.
    pub fn parse(
        info: &Value,
        config: &Value,
        clusters: &Value,
        certificates: &Value,
        stats: &Value,
    ) -> Self {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let dump = Dump::new(config);
        // commit/1.40.0/Clean/RELEASE/BoringSSL
        let version = word(&info["version"]);
        let version = version.split('/').nth(1).unwrap_or(&version).to_owned();
        let statuses = clusters["cluster_statuses"].as_array();
        let statuses = statuses.into_iter().flatten();
        let statuses: Vec<_> = statuses
            .map(|status| (word(&status["name"]), status))
            .collect();
        let hosts = statuses.iter().map(|(name, status)| {
            let hosts = status["host_statuses"].as_array();
            let hosts = hosts.into_iter().flatten().map(endpoint);
            (name.clone(), hosts.collect())
        });
        let limits = statuses.iter().filter_map(|(name, status)| {
            let limit = &status["circuit_breakers"]["thresholds"][0]["max_requests"];
            Some((name.clone(), limit.as_u64()?))
        });
        let stats = Stats::parse(stats);
        Self {
            node: word(&info["node"]["id"]),
            service_node: Some(word(&info["command_line_options"]["service_node"]))
                .filter(|name| !name.is_empty()),
            version,
            state: word(&info["state"]),
            refused: dump.refused(),
            connections: dump.connections(),
            clusters: dump.clusters(),
            hosts: hosts.collect(),
            max_requests: limits.collect(),
            certificates: chains(certificates),
            came_unix_ms: dump.came_unix_ms(),
            earlier: stats.clone(),
            stats,
        }
    }

    /// What weir-control knows this plugin's sidecar by; absent where that is the name of the machine.
    pub(super) fn sidecar<'a>(&'a self, plugin: &'a Plugin) -> Option<&'a str> {
        let settings = plugin.settings.as_ref().ok();
        let written = settings.and_then(|settings| settings["proxy"].as_str());
        written.or(match plugin.shell {
            Shell::Wasm { .. } => Some(&self.node),
            // Envoy does not tell it the node's id.
            Shell::Native => self.service_node.as_deref(),
        })
    }

    /// Weir's filters, each with where it stands.
    pub(super) fn plugins(&self) -> impl Iterator<Item = (&Connections, &Plugin)> {
        let connections = self.connections.iter();
        connections.flat_map(|one| one.plugins.iter().map(move |plugin| (one, plugin)))
    }
}

impl Plugin {
    /// Envoy's name of weir-control's cluster; absent where the plugin is to have no tables.
    pub(super) fn control_cluster(&self) -> Option<&str> {
        let settings = self.settings.as_ref().ok()?;
        match settings.get("control_cluster") {
            None => Some("weir-control"),
            Some(name) => name.as_str(),
        }
    }

    /// Envoy's name of each cluster and weir-control's for it; `*` is every other.
    pub(super) fn clusters(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        let settings = self.settings.as_ref().ok();
        let clusters = settings.and_then(|settings| settings["clusters"].as_object());
        let clusters = clusters.into_iter().flatten();
        clusters.map(|(name, cluster)| {
            let table = cluster["table"].as_str().unwrap_or(name);
            (name.as_str(), table, cluster)
        })
    }
}

fn endpoint(status: &Value) -> Endpoint {
    let socket = &status["address"]["socket_address"];
    let stat = |name: &str| {
        let stats = status["stats"].as_array().into_iter().flatten();
        let mut named = stats.filter(|stat| stat["name"] == name);
        // Numbers of 64 bits are text, and 0 is left out.
        let value = named.next().and_then(|stat| stat["value"].as_str());
        value.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    let ip = socket["address"].as_str().unwrap_or_default();
    let ip = match ip.contains(':') {
        true => format!("[{ip}]"),
        false => ip.to_owned(),
    };
    Endpoint {
        address: format!("{ip}:{}", socket["port_value"]),
        connections: stat("cx_active"),
        failed_connections: stat("cx_connect_fail"),
    }
}

fn chains(page: &Value) -> Vec<Certificate> {
    let all = page["certificates"].as_array().into_iter().flatten();
    let lists = all.flat_map(|one| [&one["ca_cert"], &one["cert_chain"]]);
    let chains = lists.filter_map(Value::as_array).flatten();
    let chains = chains.map(|chain| {
        let expires = chain["expiration_time"].as_str();
        let expires = expires.and_then(|time| time.parse::<jiff::Timestamp>().ok());
        Certificate {
            path: chain["path"].as_str().unwrap_or_default().to_owned(),
            expires: expires.map(SystemTime::from),
        }
    });
    chains.collect()
}
