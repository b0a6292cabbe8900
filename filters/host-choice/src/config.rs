// SPDX-License-Identifier: Apache-2.0
//! The plugin configuration: as written ([`Written`], JSON) and as checked ([`Config`]).

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use weir_policy::{CLASSES, KeyHash, Keys, Salt};

/// Where a request says what it is, unless the configuration says otherwise.
pub const KEY_HEADER: &str = "x-weir-key";
/// See [`KEY_HEADER`].
pub const PRIORITY_HEADER: &str = "x-weir-priority";
/// See [`KEY_HEADER`].
pub const USER_HEADER: &str = "x-weir-user";
/// Above this a serialized reference to the cluster is no longer plain ASCII, which the SDK requires.
const MAX_CONTROL_CLUSTER: usize = 120;
/// Shared data cannot forget a key, so the number of tables is bounded.
const MAX_CLUSTERS: usize = 64;

/// What the plugin's JSON says. CONFIGURATION.md lists the fields with their defaults.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(deny_unknown_fields, default)]
struct Written {
    control_cluster: Option<String>,
    proxy: Option<String>,
    clusters: BTreeMap<String, WrittenCluster>,
    priorities: BTreeMap<String, u8>,
    default_priority: String,
    max_priority: u8,
    trust: Trust,
    debug: bool,
    tick: String,
    lease: String,
    report_interval: String,
    cache_limit: String,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            control_cluster: Some("weir-control".into()),
            proxy: None,
            clusters: BTreeMap::new(),
            // The two priorities of document 001 (section 2.3), with room between and around them.
            priorities: BTreeMap::from([("high".into(), 0), ("low".into(), 16)]),
            default_priority: "low".into(),
            max_priority: 0,
            trust: Trust::Loopback,
            debug: false,
            // A twentieth of the default source interval: waiting for the tick adds little to a table's age.
            tick: "50ms".into(),
            lease: "1s".into(),
            report_interval: "1s".into(),
            // Two million keys of three holders.
            cache_limit: "64MiB".into(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(deny_unknown_fields, default)]
struct WrittenCluster {
    table: Option<String>,
    key: KeySource,
    key_separator: Option<char>,
    key_salt: Option<String>,
    priority_header: String,
    user: UserSource,
}

impl Default for WrittenCluster {
    fn default() -> Self {
        Self {
            table: None,
            key: KeySource::default(),
            key_separator: None,
            key_salt: None,
            priority_header: PRIORITY_HEADER.into(),
            user: UserSource::default(),
        }
    }
}

/// Where a request's key is found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// The value of this header.
    Header(String),
    /// The path segment that stands where the template says `{key}`.
    Path(String),
}

impl Default for KeySource {
    fn default() -> Self {
        Self::Header(KEY_HEADER.into())
    }
}

/// Where a request's user is found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum UserSource {
    /// The value of this header.
    Header(String),
    /// The URI in the certificate that the caller showed.
    PeerCertificate,
}

impl Default for UserSource {
    fn default() -> Self {
        Self::Header(USER_HEADER.into())
    }
}

/// Whose key, priority and user headers are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Everybody's.
    Any,
    /// Those of callers on the loopback addresses: the application next to the sidecar.
    Loopback,
    /// Those of callers that showed a certificate.
    Mtls,
    /// Nobody's.
    None,
}

/// The checked configuration.
#[derive(Debug, PartialEq, Eq)]
pub struct Config {
    /// Envoy's name for the cluster of weir-control; none: no tables, Envoy's fallback decides.
    pub control_cluster: Option<String>,
    /// Identity towards weir-control; none: Envoy's node id.
    pub proxy: Option<String>,
    /// By Envoy's cluster name; `*` stands for every other.
    pub clusters: BTreeMap<String, ClusterConfig>,
    /// Business class by priority name; none is more important than `max_priority`.
    pub priorities: BTreeMap<String, u8>,
    /// Class of requests without a known priority.
    pub default_class: u8,
    /// Whose headers are believed.
    pub trust: Trust,
    /// Whether answers say host and reason.
    pub debug: bool,
    /// How often VMs look at shared data.
    pub tick: Duration,
    /// For how long a silent stream owner stays the owner.
    pub lease: Duration,
    /// How often weir-control hears of this proxy's requests.
    pub report_interval: Duration,
    /// Bytes that decoded cache contents take in one VM.
    pub cache_limit: usize,
}

/// How requests of one Envoy cluster are read.
#[derive(Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// weir-control's name for the cluster.
    pub table: Rc<str>,
    /// Where the key is.
    pub key: KeySource,
    /// What separates several keys in prefix order; none: it is one key, whatever it holds.
    pub key_separator: Option<u8>,
    /// What keys are hashed with; none: they have no salt.
    pub salt: Option<Salt>,
    /// The header that names the priority.
    pub priority_header: String,
    /// Where the user is.
    pub user: UserSource,
}

/// What is wrong with the configuration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ConfigError {
    #[error("plugin configuration: {}", line(.0))]
    Json(String),
    #[error("plugin configuration: {}: {}", line(field), line(reason))]
    Field { field: String, reason: String },
}

impl Config {
    /// Reads and checks the plugin configuration; empty bytes are the default.
    pub fn parse(json: &[u8]) -> Result<Self, ConfigError> {
        let written: Written = match json.trim_ascii_start().first() {
            None => Written::default(),
            // A list would be taken for the fields in order.
            Some(b'[') => return Err(ConfigError::Json("a list where an object is due".into())),
            _ => serde_json::from_slice(json)
                .map_err(|error| ConfigError::Json(error.to_string()))?,
        };
        check(written)
    }

    /// What is known of the Envoy cluster with this name.
    pub fn cluster(&self, name: &str) -> Option<&ClusterConfig> {
        self.clusters.get(name).or_else(|| self.clusters.get("*"))
    }

    /// The cluster's configuration where the name does not matter.
    pub fn only_cluster(&self) -> Option<&ClusterConfig> {
        if self.clusters.len() == 1 {
            self.clusters.get("*")
        } else {
            None
        }
    }

    /// The business class of a priority's name.
    pub fn class(&self, priority: Option<&[u8]>) -> u8 {
        priority
            .and_then(|name| std::str::from_utf8(name).ok())
            .and_then(|name| self.priorities.get(name.trim()))
            .copied()
            .unwrap_or(self.default_class)
    }
}

/// Characters of a text in a refusal.
const MAX_SHOWN: usize = 600;

/// A part of one line, not for ever: names and values in it are what somebody has written.
fn line(text: &str) -> String {
    let shown = text.chars().take(MAX_SHOWN);
    shown
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn error(field: impl Into<String>, reason: impl Into<String>) -> ConfigError {
    ConfigError::Field {
        field: field.into(),
        reason: reason.into(),
    }
}

fn check(written: Written) -> Result<Config, ConfigError> {
    if let Some(cluster) = &written.control_cluster {
        let sound =
            !cluster.is_empty() && cluster.len() <= MAX_CONTROL_CLUSTER && cluster.is_ascii();
        if !sound {
            let reason = format!("{cluster:?} is not 1 to {MAX_CONTROL_CLUSTER} ASCII characters");
            return Err(error("control_cluster", reason));
        }
    }
    if written.clusters.len() > MAX_CLUSTERS {
        let reason = format!(
            "{} are more than the limit of {MAX_CLUSTERS}",
            written.clusters.len()
        );
        return Err(error("clusters", reason));
    }
    for (name, class) in &written.priorities {
        if u16::from(*class) >= CLASSES {
            return Err(error(
                format!("priorities.{name}"),
                format!("{class} is not in 0..={}", CLASSES - 1),
            ));
        }
    }
    if u16::from(written.max_priority) >= CLASSES {
        let reason = format!("{} is not in 0..={}", written.max_priority, CLASSES - 1);
        return Err(error("max_priority", reason));
    }
    let Some(default_class) = written.priorities.get(&written.default_priority).copied() else {
        let known: Vec<_> = written.priorities.keys().map(String::as_str).collect();
        let reason = format!(
            "{:?} is not one of priorities ({})",
            written.default_priority,
            known.join(", ")
        );
        return Err(error("default_priority", reason));
    };
    let clusters = written.clusters.into_iter().map(|(name, cluster)| {
        let cluster = check_cluster(&name, cluster)?;
        Ok((name, cluster))
    });
    Ok(Config {
        clusters: clusters.collect::<Result<_, _>>()?,
        control_cluster: written.control_cluster,
        proxy: written.proxy.filter(|proxy| !proxy.is_empty()),
        // Here, so that no request pays for it.
        priorities: written
            .priorities
            .into_iter()
            .map(|(name, class)| (name, class.max(written.max_priority)))
            .collect(),
        default_class: default_class.max(written.max_priority),
        trust: written.trust,
        debug: written.debug,
        tick: duration("tick", &written.tick, 10, 1_000)?,
        lease: duration("lease", &written.lease, 500, 60_000)?,
        report_interval: duration("report_interval", &written.report_interval, 100, 60_000)?,
        cache_limit: size("cache_limit", &written.cache_limit)?,
    })
}

fn check_cluster(name: &str, written: WrittenCluster) -> Result<ClusterConfig, ConfigError> {
    let field = |field: &str| format!("clusters.{name}.{field}");
    let table = match written.table {
        Some(table) => table,
        None if name == "*" => {
            return Err(error(
                field("table"),
                "is needed, because * is no table's name",
            ));
        }
        None => name.to_owned(),
    };
    if table.is_empty() || table.len() > 255 {
        return Err(error(field("table"), "is not 1 to 255 bytes"));
    }
    match &written.key {
        KeySource::Header(header) => check_header(&field("key.header"), header)?,
        KeySource::Path(template) => {
            let places = template
                .split('/')
                .filter(|segment| *segment == "{key}")
                .count();
            if !template.starts_with('/') || places != 1 {
                let reason = format!("{template:?} is not a path with one segment {{key}}");
                return Err(error(field("key.path"), reason));
            }
        }
    }
    let key_separator = match written.key_separator {
        Some(separator) if !separator.is_ascii_punctuation() => {
            let reason = format!("{separator:?} is not an ASCII punctuation character");
            return Err(error(field("key_separator"), reason));
        }
        separator => separator.map(|separator| separator as u8),
    };
    let salt = match &written.key_salt {
        Some(text) => match Salt::parse(text) {
            Some(salt) => Some(salt),
            None => return Err(error(field("key_salt"), "is not 32 hexadecimal digits")),
        },
        None => None,
    };
    if let UserSource::Header(header) = &written.user {
        check_header(&field("user.header"), header)?;
    }
    check_header(&field("priority_header"), &written.priority_header)?;
    let (key, user, priority_header) = (written.key, written.user, written.priority_header);
    Ok(ClusterConfig {
        table: table.into(),
        key,
        key_separator,
        salt,
        priority_header,
        user,
    })
}

fn check_header(field: &str, name: &str) -> Result<(), ConfigError> {
    let token =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    if !name.is_empty() && name.len() <= 128 && name.bytes().all(token) {
        return Ok(());
    }
    Err(error(
        field,
        format!("{name:?} is not a lower-case header name"),
    ))
}

fn duration(
    field: &str,
    written: &str,
    least_ms: u64,
    most_ms: u64,
) -> Result<Duration, ConfigError> {
    let split = written
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(written.len());
    let (number, unit) = written.split_at(split);
    let factor = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        _ => {
            return Err(error(
                field,
                format!("{written:?} is not a number with ms or s behind it"),
            ));
        }
    };
    let milliseconds = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor));
    match milliseconds {
        Some(ms) if (least_ms..=most_ms).contains(&ms) => Ok(Duration::from_millis(ms)),
        Some(_) => Err(error(
            field,
            format!("{written:?} is not in {least_ms}ms..={most_ms}ms"),
        )),
        None => Err(error(
            field,
            format!("{written:?} is not a number with ms or s behind it"),
        )),
    }
}

/// 64KiB to 1GiB: a VM has 4 GiB for everything.
fn size(field: &str, written: &str) -> Result<usize, ConfigError> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let mut sizes = units.iter().filter_map(|(unit, shift)| {
        let number: usize = written.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(1 << shift)
    });
    match sizes.next() {
        Some(bytes) if (1 << 16..=1 << 30).contains(&bytes) => Ok(bytes),
        Some(_) => Err(error(field, format!("{written:?} is not in 64KiB..=1GiB"))),
        None => Err(error(
            field,
            format!("{written:?} is not a whole number with KiB, MiB or GiB behind it"),
        )),
    }
}

/// The segment of `path` that stands where `template` has `{key}`; none where the path is another.
pub fn key_in_path<'a>(template: &str, path: &'a [u8]) -> Option<&'a [u8]> {
    let path = path.split(|byte| *byte == b'?').next()?;
    let mut segments = path.split(|byte| *byte == b'/');
    let mut key = None;
    for wanted in template.split('/') {
        let segment = segments.next()?;
        match wanted {
            "{key}" => key = Some(segment),
            _ if wanted.as_bytes() != segment => return None,
            _ => {}
        }
    }
    // A longer path is under the template's: the key is the same.
    key.filter(|key| !key.is_empty())
}

/// The keys that a value names: itself, or where there is a separator those between; spaces around them and places
/// without one do not count.
pub fn keys(value: Option<&[u8]>, separator: Option<u8>, salt: Option<&Salt>) -> Keys {
    let hash = |name: &[u8]| KeyHash::under(salt, name);
    let (Some(list), Some(separator)) = (value, separator) else {
        return value.map(hash).into();
    };
    let names = list.split(|byte| *byte == separator);
    let names = names
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty());
    Keys::new(names.map(hash))
}

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_class_is_more_important_than_the_cap() {
        let json =
            br#"{"max_priority":8,"default_priority":"a","priorities":{"a":0,"b":8,"c":20}}"#;
        let config = Config::parse(json).unwrap();
        let class = |name: &str| config.class(Some(name.as_bytes()));
        assert_eq!(["a", "b", "c", "?"].map(class), [8, 8, 20, 8]);
        assert_eq!(config.class(None), 8);
    }

    #[test]
    fn nothing_written_is_the_default() {
        let config = Config::parse(b"").unwrap();
        assert_eq!(config, Config::parse(b"{}").unwrap());
        assert_eq!(config.control_cluster.as_deref(), Some("weir-control"));
        assert_eq!(
            (config.tick.as_millis(), config.lease.as_millis()),
            (50, 1000)
        );
        assert_eq!(config.cache_limit, 64 << 20);
        assert_eq!(config.class(Some(b"high")), 0);
        assert_eq!(config.class(Some(b"urgent")), 16);
        assert_eq!(config.class(Some(b"\xff")), 16);
        assert_eq!(config.class(None), 16);
    }

    #[test]
    fn a_cluster_is_found_by_envoys_name_or_by_the_star() {
        let config = Config::parse(br#"{"clusters":{"a":{},"*":{"table":"rest"}}}"#).unwrap();
        assert_eq!(config.cluster("a").unwrap().table.as_ref(), "a");
        assert_eq!(config.cluster("b").unwrap().table.as_ref(), "rest");
        assert!(config.only_cluster().is_none());
    }

    #[test]
    fn each_fault_is_named_with_its_field() {
        let faults: [(&str, &str); 18] = [
            (
                r#"{"cache_limit":"64"}"#,
                r#"cache_limit: "64" is not a whole number with KiB, MiB or GiB"#,
            ),
            (
                r#"{"cache_limit":"2GiB"}"#,
                r#"cache_limit: "2GiB" is not in 64KiB..=1GiB"#,
            ),
            (r#"{"tik":"1s"}"#, "unknown field `tik`"),
            (r#"{"clusters":{"a":{"keys":{}}}}"#, "unknown field `keys`"),
            (r#"{"trust":"some"}"#, "unknown variant `some`"),
            ("{", "EOF"),
            (
                r#"{"tick":"5ms"}"#,
                r#"tick: "5ms" is not in 10ms..=1000ms"#,
            ),
            (
                r#"{"lease":"1"}"#,
                r#"lease: "1" is not a number with ms or s behind it"#,
            ),
            (r#"{"control_cluster":""}"#, "control_cluster:"),
            (
                r#"{"priorities":{"x":32},"default_priority":"x"}"#,
                "priorities.x: 32 is not in 0..=31",
            ),
            (
                r#"{"max_priority":32}"#,
                "max_priority: 32 is not in 0..=31",
            ),
            (
                r#"{"default_priority":"x"}"#,
                r#"default_priority: "x" is not one of priorities (high, low)"#,
            ),
            (r#"{"clusters":{"*":{}}}"#, "clusters.*.table: is needed"),
            (
                r#"{"clusters":{"a":{"key":{"header":"X"}}}}"#,
                r#"clusters.a.key.header: "X" is not a lower-case"#,
            ),
            (
                r#"{"clusters":{"a":{"key":{"path":"/x"}}}}"#,
                "clusters.a.key.path:",
            ),
            (
                r#"{"clusters":{"a":{"key_salt":"0123"}}}"#,
                "clusters.a.key_salt: is not 32 hexadecimal digits",
            ),
            (
                r#"{"clusters":{"a":{"key_separator":"x"}}}"#,
                "clusters.a.key_separator: 'x' is not an ASCII punctuation",
            ),
            (
                r#"{"clusters":{"a":{"key_separator":";;"}}}"#,
                "a character",
            ),
        ];
        for (json, expected) in faults {
            let message = Config::parse(json.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expected), "{json}: {message}");
        }
    }

    #[test]
    fn the_key_is_the_segment_that_the_template_marks() {
        let template = "/v1/projects/{key}/run";
        assert_eq!(
            key_in_path(template, b"/v1/projects/7/run?x=1"),
            Some(&b"7"[..])
        );
        assert_eq!(key_in_path("/v1/{key}", b"/v1/7/anything"), Some(&b"7"[..]));
        assert_eq!(key_in_path(template, b"/v1/projects//run"), None);
        assert_eq!(key_in_path(template, b"/v2/projects/7/run"), None);
        assert_eq!(key_in_path(template, b"/v1/projects/7"), None);
    }
}
