// SPDX-License-Identifier: Apache-2.0
//! What the plugin's JSON says, and the checks by which it becomes a [`Config`].

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use weir_body::value::{MAX_STEPS, Pointer};
use weir_policy::{CLASSES, MAX_BLOCKS, Salt};

use super::{
    BodyKey, BodyValue, ClusterConfig, Config, ConfigError, KEY_HEADER, KeySource, PRIORITY_HEADER,
    Prefill, Role, Trust, UserSource, error,
};
use crate::destination;
use crate::wanted::{OWN_PREFIX, TIME_OUTS, Wanted};

/// Above this a serialized reference to the cluster is no longer plain ASCII, which the SDK requires.
const MAX_CONTROL_CLUSTER: usize = 120;
/// As `breakwater::TARGET`.
const TARGET_DELAY: &str = "1s";
/// No host has more.
const MAX_CORES: u32 = 4096;
/// So much of a body is read at most, unless the configuration says otherwise: 64,000 tokens of English.
const MAX_BODY: &str = "256KiB";
/// Bytes of a prompt's block.
const BLOCK_BYTES: RangeInclusive<u32> = 64..=65_536;
/// What llm-d's sidecar reads the address of the host from that reads a prompt.
const PREFILL_HEADER: &str = "x-prefiller-host-port";
/// About a thousand tokens. An engine that reads 8,000 a second does it in the time in which it writes five of each answer,
/// and the way to another engine and back takes time too.
const PREFILL_ABOVE: &str = "4KiB";
/// Shared data cannot forget a key, so the number of tables is bounded.
const MAX_CLUSTERS: usize = 64;

/// What the plugin's JSON says. CONFIGURATION.md lists the fields with their defaults.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub(super) struct Written {
    role: Role,
    cores: u32,
    bodies: bool,
    target_delay: String,
    control_cluster: Option<String>,
    proxy: Option<String>,
    zone: Option<String>,
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
            role: Role::Caller,
            cores: 0,
            bodies: false,
            target_delay: TARGET_DELAY.into(),
            control_cluster: Some("weir-control".into()),
            proxy: None,
            zone: None,
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
            report_interval: "100ms".into(),
            // Two million keys of three holders.
            cache_limit: "64MiB".into(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenCluster {
    enabled: bool,
    table: Option<String>,
    key: WrittenKey,
    key_separator: Option<char>,
    key_salt: Option<String>,
    priority_header: String,
    user: UserSource,
    prefill: Option<WrittenPrefill>,
}

impl Default for WrittenCluster {
    fn default() -> Self {
        Self {
            enabled: true,
            table: None,
            key: WrittenKey::Header(KEY_HEADER.into()),
            key_separator: None,
            key_salt: None,
            priority_header: PRIORITY_HEADER.into(),
            user: UserSource::default(),
            prefill: None,
        }
    }
}

/// Where prompts are read for hosts that write.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenPrefill {
    table: String,
    header: String,
    above_bytes: String,
}

impl Default for WrittenPrefill {
    fn default() -> Self {
        Self {
            table: String::new(),
            header: PREFILL_HEADER.into(),
            above_bytes: PREFILL_ABOVE.into(),
        }
    }
}

/// Where the key is.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "snake_case")]
enum WrittenKey {
    Header(String),
    Path(String),
    Json(String),
    Prompt(WrittenPrompt),
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenPrompt {
    block_bytes: u32,
    max_bytes: String,
}

impl Default for WrittenPrompt {
    fn default() -> Self {
        Self {
            // With 64 of them the first 64 KiB of a prompt tell hosts apart.
            block_bytes: 1024,
            max_bytes: MAX_BODY.into(),
        }
    }
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
        written.check()
    }
}

impl Written {
    /// What it says, if it is sound.
    fn check(self) -> Result<Config, ConfigError> {
        let target_delay = duration("target_delay", &self.target_delay, 1, 60_000)?;
        self.check_bounds()?;
        let Some(default_class) = self.priorities.get(&self.default_priority).copied() else {
            let known: Vec<_> = self.priorities.keys().map(String::as_str).collect();
            let reason = format!(
                "{:?} is not one of priorities ({})",
                self.default_priority,
                known.join(", ")
            );
            return Err(error("default_priority", reason));
        };
        // Neither map is collected: to sort what is sorted is 10 kB of machine code.
        let (mut clusters, mut others) = (BTreeMap::new(), None);
        let mut is_in_bodies = false;
        for (name, cluster) in self.clusters {
            let cluster = check_cluster(&name, cluster)?;
            is_in_bodies |= matches!(cluster.key, KeySource::Body(_));
            match name.as_str() {
                "*" => others = Some(cluster),
                _ => drop(clusters.insert(name.into_bytes(), cluster)),
            }
        }
        // Here, so that no request pays for it.
        let mut priorities = self.priorities;
        for class in priorities.values_mut() {
            *class = (*class).max(self.max_priority);
        }
        Ok(Config {
            role: self.role,
            cores: self.cores,
            bodies: self.bodies,
            target_delay,
            reads_bodies: self.role == Role::Caller && is_in_bodies,
            clusters,
            others,
            control_cluster: self.control_cluster,
            proxy: self.proxy.filter(|proxy| !proxy.is_empty()),
            zone: self.zone,
            priorities,
            default_class: default_class.max(self.max_priority),
            trust: self.trust,
            debug: self.debug,
            tick: duration("tick", &self.tick, 10, 1_000)?,
            lease: duration("lease", &self.lease, 500, 60_000)?,
            report_interval: duration("report_interval", &self.report_interval, 100, 1_000)?,
            // A VM has 4 GiB for everything.
            cache_limit: size(
                "cache_limit",
                &self.cache_limit,
                ("64KiB", 1 << 16),
                ("1GiB", 1 << 30),
            )?,
        })
    }

    fn check_bounds(&self) -> Result<(), ConfigError> {
        match self.role {
            Role::Host if !(1..=MAX_CORES).contains(&self.cores) => {
                let reason = format!(
                    "{} is not in 1..={MAX_CORES}, which role host needs",
                    self.cores
                );
                return Err(error("cores", reason));
            }
            Role::Host if !self.clusters.is_empty() => {
                let reason = "is not of role host, which stands before one application";
                return Err(error("clusters", reason));
            }
            Role::Attempt if self.clusters.is_empty() => {
                let reason = "is needed by role attempt: the cluster whose attempts it sees";
                return Err(error("clusters", reason));
            }
            Role::Caller | Role::Attempt => {
                let of_host = [
                    ("cores", self.cores > 0),
                    ("bodies", self.bodies),
                    ("target_delay", self.target_delay != TARGET_DELAY),
                ];
                if let Some((field, _)) = of_host.iter().find(|(_, is_set)| *is_set) {
                    return Err(error(*field, "is of role host alone"));
                }
            }
            _ => {}
        }
        if let Some(cluster) = &self.control_cluster {
            let sound =
                !cluster.is_empty() && cluster.len() <= MAX_CONTROL_CLUSTER && cluster.is_ascii();
            if !sound {
                let reason =
                    format!("{cluster:?} is not 1 to {MAX_CONTROL_CLUSTER} ASCII characters");
                return Err(error("control_cluster", reason));
            }
        }
        let prefills = self.clusters.values().filter_map(|it| it.prefill.as_ref());
        let tables = self.clusters.len() + prefills.count();
        if tables > MAX_CLUSTERS {
            let reason = format!("{tables} are more than the limit of {MAX_CLUSTERS}");
            return Err(error("clusters", reason));
        }
        for (name, class) in &self.priorities {
            if u16::from(*class) >= CLASSES {
                return Err(error(
                    format!("priorities.{name}"),
                    format!("{class} is not in 0..={}", CLASSES - 1),
                ));
            }
        }
        if u16::from(self.max_priority) >= CLASSES {
            let reason = format!("{} is not in 0..={}", self.max_priority, CLASSES - 1);
            return Err(error("max_priority", reason));
        }
        Ok(())
    }
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
    let table = check_table(&field("table"), table)?;
    let key = check_key(&field("key"), written.key)?;
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
    let prefill = match written.prefill {
        Some(prefill) => Some(check_prefill(&field("prefill"), prefill, (&table, &key))?),
        None => None,
    };
    let (user, priority_header) = (written.user, written.priority_header);
    let said = [key.header(), &priority_header, user.header()];
    let wanted = Wanted::of(said);
    if let Some(prefill) = &prefill {
        let header = &*prefill.header;
        let is_own =
            header.as_bytes().starts_with(OWN_PREFIX) || TIME_OUTS.contains(&header.as_bytes());
        if is_own || header == destination::HEADER || said.contains(&header) {
            let reason = format!("{header:?} says something else already");
            return Err(error(field("prefill.header"), reason));
        }
    }
    Ok(ClusterConfig {
        enabled: written.enabled,
        table,
        key,
        key_separator,
        salt,
        priority_header,
        user,
        prefill: prefill.map(Rc::new),
        wanted,
    })
}

fn check_table(field: &str, table: String) -> Result<Rc<str>, ConfigError> {
    if table.is_empty() || table.len() > 255 {
        return Err(error(field, "is not 1 to 255 bytes"));
    }
    Ok(table.into())
}

/// Of a cluster with this table and this key.
fn check_prefill(
    field: &str,
    written: WrittenPrefill,
    (own, key): (&Rc<str>, &KeySource),
) -> Result<Prefill, ConfigError> {
    let of = |name: &str| format!("{field}.{name}");
    let table = check_table(&of("table"), written.table)?;
    if table == *own {
        return Err(error(of("table"), "is that of the cluster itself"));
    }
    check_header(&of("header"), &written.header)?;
    let above = &written.above_bytes;
    let above_bytes = size(
        &of("above_bytes"),
        above,
        ("0KiB", 0),
        ("512KiB", 512 << 10),
    )?;
    let KeySource::Body(BodyKey {
        value: BodyValue::Prompt(block_bytes),
        ..
    }) = key
    else {
        let reason = "needs key.prompt, by which the length of a prompt is known";
        return Err(error(field, reason));
    };
    let above_blocks = above_bytes / (*block_bytes).max(1);
    if above_blocks >= MAX_BLOCKS {
        let reason = format!(
            "{above:?} is as much as keys tell of a prompt: {MAX_BLOCKS} blocks of {block_bytes} bytes (key.prompt.block_bytes)"
        );
        return Err(error(of("above_bytes"), reason));
    }
    Ok(Prefill {
        table,
        header: written.header,
        above_blocks,
    })
}

fn check_key(field: &str, written: WrittenKey) -> Result<KeySource, ConfigError> {
    let of = |name: &str| format!("{field}.{name}");
    Ok(match written {
        WrittenKey::Header(header) => {
            check_header(&of("header"), &header)?;
            KeySource::Header(header)
        }
        WrittenKey::Path(template) => {
            let segments = template.split('/');
            let places = segments.filter(|segment| *segment == "{key}").count();
            if !template.starts_with('/') || places != 1 {
                let reason = format!("{template:?} is not a path with one segment {{key}}");
                return Err(error(of("path"), reason));
            }
            KeySource::Path(template)
        }
        WrittenKey::Json(text) => {
            let Some(pointer) = Pointer::parse(&text) else {
                let reason = format!("{text:?} is not a JSON pointer of 1 to {MAX_STEPS} steps");
                return Err(error(of("json"), reason));
            };
            KeySource::Body(BodyKey {
                value: BodyValue::At(pointer),
                max_bytes: check_max_bytes(&of("json"), MAX_BODY)?,
            })
        }
        WrittenKey::Prompt(WrittenPrompt {
            block_bytes,
            max_bytes,
        }) => {
            if !BLOCK_BYTES.contains(&block_bytes) {
                let (least, most) = (BLOCK_BYTES.start(), BLOCK_BYTES.end());
                let reason = format!("{block_bytes} is not in {least}..={most}");
                return Err(error(of("prompt.block_bytes"), reason));
            }
            KeySource::Body(BodyKey {
                value: BodyValue::Prompt(block_bytes as usize),
                max_bytes: check_max_bytes(&of("prompt.max_bytes"), &max_bytes)?,
            })
        }
    })
}

/// Envoy keeps 1 MiB of a body by default.
fn check_max_bytes(field: &str, written: &str) -> Result<usize, ConfigError> {
    size(field, written, ("1KiB", 1 << 10), ("512KiB", 512 << 10))
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

fn size(
    field: &str,
    written: &str,
    (least, at_least): (&str, usize),
    (most, at_most): (&str, usize),
) -> Result<usize, ConfigError> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let mut sizes = units.iter().filter_map(|(unit, shift)| {
        let number: usize = written.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(1 << shift)
    });
    match sizes.next() {
        Some(bytes) if (at_least..=at_most).contains(&bytes) => Ok(bytes),
        Some(_) => Err(error(
            field,
            format!("{written:?} is not in {least}..={most}"),
        )),
        None => Err(error(
            field,
            format!("{written:?} is not a whole number with KiB, MiB or GiB behind it"),
        )),
    }
}
