// SPDX-License-Identifier: Apache-2.0
//! The `standalone` section, checked.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Map, Value};
use weir_settings::show_duration;

use super::extension::{attempt_configuration, plugin_configuration};
use super::written::{self, SECTION, Written};

/// The field that is wrong, such as `listeners[0].address`, and why.
pub type Error = (String, String);

/// What standalone mode serves. After [`Written::check`] nothing checks it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Path of the filter's code.
    pub code: String,
    /// How the code travels.
    pub delivery: Delivery,
    /// Merged over the generated plugin configuration.
    pub plugin: Map<String, Value>,
    /// weir-control's cluster in the sidecars' bootstrap.
    pub control_cluster: String,
    /// Never empty, names and addresses unique.
    pub listeners: Vec<Listener>,
    /// Chooses where Weir does not.
    pub fallback: Fallback,
    /// What hosts speak.
    pub protocol: Protocol,
    /// To a host.
    pub connect_timeout: Duration,
    /// Of one sidecar to one cluster.
    pub max_requests: u32,
}

/// What sidecars listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Unique.
    pub name: String,
    /// Unique.
    pub address: SocketAddr,
    /// A configured cluster.
    pub cluster: String,
    /// Never empty.
    pub domains: Vec<String>,
    /// Zero is no limit.
    pub timeout: Duration,
    /// Never zero.
    pub request_timeout: Duration,
    /// A file.
    pub access_log: Option<String>,
}

/// How the filter's code comes to sidecars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// In the ECDS resource.
    Inline,
    /// As a file that is there already.
    Path,
    /// The same, and it is a dynamic module of Envoy.
    Native,
}

/// Envoy's policy for requests without a usable choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// `envoy.load_balancing_policies.least_request`.
    LeastRequest,
    /// `envoy.load_balancing_policies.round_robin`.
    RoundRobin,
    /// `envoy.load_balancing_policies.random`.
    Random,
}

/// What hosts speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 in the clear.
    H2,
}

const DELIVERIES: [(&str, Delivery); 2] = [("inline", Delivery::Inline), ("path", Delivery::Path)];
const FALLBACKS: [(&str, Fallback); 3] = [
    ("least_request", Fallback::LeastRequest),
    ("round_robin", Fallback::RoundRobin),
    ("random", Fallback::Random),
];
const PROTOCOLS: [(&str, Protocol); 2] = [("http1", Protocol::Http1), ("h2", Protocol::H2)];

/// Long jobs are what Weir is for.
const TIMEOUT: Duration = Duration::from_secs(300);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// No request waits for a day.
const LONGEST: Duration = Duration::from_secs(86_400);
const MAX_REQUESTS: u32 = 100_000;
const CONTROL_CLUSTER: &str = "weir-control";

impl Written {
    /// Checks everything that can be known without touching files. `clusters` are the names of all
    /// configured clusters.
    pub fn check(&self, clusters: &[&str]) -> Result<Config, Error> {
        let (code, delivery) = self.filter.code()?;
        note(
            "control_cluster",
            "text",
            Some(CONTROL_CLUSTER.to_owned()),
            None,
        );
        note("filter.config", "fields", None, None);
        note("filter.native", "text", None, None);
        note(
            "max_requests",
            "whole number",
            Some(MAX_REQUESTS.to_string()),
            None,
        );
        let control_cluster = self
            .control_cluster
            .clone()
            .unwrap_or(CONTROL_CLUSTER.to_owned());
        if control_cluster.is_empty() || clusters.contains(&&*control_cluster) {
            let reason = format!("{control_cluster:?} is empty or the name of a cluster of hosts");
            return Err(("control_cluster".to_owned(), reason));
        }
        let max_requests = self.max_requests.unwrap_or(MAX_REQUESTS);
        if max_requests == 0 {
            return Err((
                "max_requests".to_owned(),
                "0 would let nothing through".to_owned(),
            ));
        }
        let config = Config {
            code,
            delivery,
            plugin: self.filter.config.0.clone(),
            control_cluster,
            listeners: listeners(&self.listeners, clusters)?,
            fallback: choice(self.fallback.as_deref(), "fallback", &FALLBACKS)?,
            protocol: choice(self.protocol.as_deref(), "protocol", &PROTOCOLS)?,
            connect_timeout: positive(
                self.connect_timeout.as_deref(),
                "connect_timeout",
                CONNECT_TIMEOUT,
            )?,
            max_requests,
        };
        // With the filter's own eyes, before any sidecar sees it.
        let plugin = plugin_configuration(&config, clusters.iter().copied());
        for told in [&plugin, &attempt_configuration(&plugin)] {
            weir_filter::config::Config::parse(told.to_string().as_bytes())
                .map_err(|error| ("filter.config".to_owned(), error.to_string()))?;
        }
        Ok(config)
    }
}

impl written::Filter {
    /// Where the code is, and how it comes to sidecars.
    fn code(&self) -> Result<(String, Delivery), Error> {
        let delivery = choice(self.delivery.as_deref(), "filter.delivery", &DELIVERIES)?;
        let refuse = |field: &str, reason: &str| Err((field.to_owned(), reason.to_owned()));
        match &self.native {
            None => {
                let path = required(self.wasm.as_ref(), "filter.wasm")?;
                match delivery {
                    // Here, too.
                    Delivery::Path if !path.starts_with('/') => {
                        let reason = "is no absolute path, as Envoy wants one with delivery: path";
                        refuse("filter.wasm", &format!("{path:?} {reason}"))
                    }
                    _ => Ok((path, delivery)),
                }
            }
            Some(_) if self.wasm.is_some() => {
                refuse("filter.native", "contradicts filter.wasm; leave one out")
            }
            Some(_) if self.delivery.is_some() => {
                refuse("filter.delivery", "is of filter.wasm; leave it out")
            }
            // Envoy would look for a relative one where it was started.
            Some(path) if !path.starts_with('/') => {
                refuse("filter.native", &format!("{path:?} is no absolute path"))
            }
            Some(path) => Ok((path.clone(), Delivery::Native)),
        }
    }
}

fn listeners(written: &[written::Listener], clusters: &[&str]) -> Result<Vec<Listener>, Error> {
    if written.is_empty() {
        return Err(("listeners".to_owned(), "at least one is needed".to_owned()));
    }
    let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    let checked = written.iter().enumerate().map(|(i, written)| {
        let at = format!("listeners[{i}]");
        let listener = listener(written, &at, clusters)?;
        if !names.insert(listener.name.clone()) {
            return Err((
                format!("{at}.name"),
                format!("{:?} is taken", listener.name),
            ));
        }
        // Port 0 is a free port, another one each time.
        if listener.address.port() != 0 && !addresses.insert(listener.address) {
            return Err((
                format!("{at}.address"),
                format!("{} is taken", listener.address),
            ));
        }
        Ok(listener)
    });
    checked.collect()
}

fn listener(written: &written::Listener, at: &str, clusters: &[&str]) -> Result<Listener, Error> {
    let field = |name| format!("{at}.{name}");
    let address = required(written.address.as_ref(), &field("address"))?;
    let not_an_address = |_| (field("address"), format!("{address:?} is not ip:port"));
    let cluster = required(written.cluster.as_ref(), &field("cluster"))?;
    if !clusters.contains(&&*cluster) {
        return Err((
            field("cluster"),
            format!("{cluster:?} is not one of {clusters:?}"),
        ));
    }
    note(&field("access_log"), "path", None, None);
    Ok(Listener {
        name: required(written.name.as_ref(), &field("name"))?,
        address: address.parse().map_err(not_an_address)?,
        cluster,
        domains: domains(written.domains.as_deref(), &field("domains"))?,
        timeout: duration(written.timeout.as_deref(), &field("timeout"), TIMEOUT)?,
        request_timeout: positive(
            written.request_timeout.as_deref(),
            &field("request_timeout"),
            TIMEOUT,
        )?,
        access_log: written.access_log.clone(),
    })
}

/// Envoy refuses a route configuration with a domain twice.
fn domains(written: Option<&[String]>, field: &str) -> Result<Vec<String>, Error> {
    note(&format!("{field}[]"), "text", Some("*".to_owned()), None);
    let Some(written) = written else {
        return Ok(vec!["*".to_owned()]);
    };
    let unique: BTreeSet<&String> = written.iter().collect();
    if written.is_empty() || unique.len() < written.len() || written.iter().any(String::is_empty) {
        return Err((
            field.to_owned(),
            "needs at least one, none empty and none twice".to_owned(),
        ));
    }
    Ok(written.to_vec())
}

/// For the reference; `field` as errors name it.
fn note(field: &str, kind: &str, default: Option<String>, range: Option<String>) {
    weir_settings::note(&format!("{SECTION}.{field}"), kind, default, range);
}

fn required(written: Option<&String>, field: &str) -> Result<String, Error> {
    note(field, "text", None, None);
    let present = written.filter(|text| !text.is_empty()).cloned();
    present.ok_or_else(|| (field.to_owned(), "is required".to_owned()))
}

/// One of several names; the first is the default.
fn choice<T: Copy>(written: Option<&str>, field: &str, all: &[(&str, T)]) -> Result<T, Error> {
    let shown: Vec<_> = all.iter().map(|(name, _)| format!("`{name}`")).collect();
    note(
        field,
        "name",
        Some(all[0].0.to_owned()),
        Some(shown.join(", ")),
    );
    let written = written.unwrap_or(all[0].0);
    if let Some((_, found)) = all.iter().find(|(name, _)| *name == written) {
        return Ok(*found);
    }
    let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
    Err((
        field.to_owned(),
        format!("{written:?} is not one of {}", names.join(", ")),
    ))
}

fn duration(written: Option<&str>, field: &str, default: Duration) -> Result<Duration, Error> {
    let longest = show_duration(LONGEST);
    note(
        field,
        "duration",
        Some(show_duration(default)),
        Some(format!("at most {longest}")),
    );
    let Some(written) = written else {
        return Ok(default);
    };
    let unit = written
        .find(|c: char| !c.is_ascii_digit())
        .map(|digits| written.split_at(digits));
    let duration = unit.and_then(|(number, unit)| {
        let number = number.parse().ok()?;
        match unit {
            "ms" => Some(Duration::from_millis(number)),
            "s" => Some(Duration::from_secs(number)),
            "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
            _ => None,
        }
    });
    let refuse = || {
        (
            field.to_owned(),
            format!("{written:?} is not like 500ms, 30s or 5m"),
        )
    };
    duration
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(refuse)
}

/// At least a millisecond, which is Envoy's resolution.
fn positive(written: Option<&str>, field: &str, default: Duration) -> Result<Duration, Error> {
    match duration(written, field, default)? {
        short if short < Duration::from_millis(1) => {
            Err((field.to_owned(), "must be at least 1ms".to_owned()))
        }
        long_enough => Ok(long_enough),
    }
}
