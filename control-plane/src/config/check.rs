// SPDX-License-Identifier: Apache-2.0
//! From what was written to what is checked.

mod authorization;
mod cluster;
mod consul;
mod dns;
mod engine;
mod kubeconfig;
mod kubernetes;
mod kv_events;
mod plan;
pub(crate) mod policies;
mod prometheus;
mod replicas;
mod server;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use weir_settings::Scope;

use super::{
    AsRead, Cluster, Config, DiscoveryLimits, Error, Files, ReceiptFiles, ReportLimits, Tls, Xds,
    written,
};
use crate::certificate::{Validity, validity};
use crate::errors::with_sources;
use crate::standalone::{Code, Standalone};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Reads files and remembers them.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) files: Files,
    reads_none: bool,
    certificates: BTreeMap<String, Validity>,
}

impl Reader {
    /// For what others have written, who may have no file of this machine read and sent to a host of theirs.
    fn without_files() -> Self {
        Self {
            reads_none: true,
            ..Self::default()
        }
    }

    /// What others may write, whose hosts take this process's memory and time by it, or else what its owner may.
    pub(super) fn limit<T>(&self, others: T, owner: T) -> T {
        if self.reads_none { others } else { owner }
    }

    fn bytes(&mut self, path: &Path) -> Result<Vec<u8>, String> {
        if self.reads_none {
            let reason = "files are named in weir-control.yaml alone";
            return Err(format!("cannot read {}: {reason}", path.display()));
        }
        let (read, file) = AsRead::read(path);
        self.files.insert(path.to_owned(), file);
        read.map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    /// Parses a YAML file.
    fn yaml<T: serde::de::DeserializeOwned>(&mut self, path: &Path) -> Result<T, Error> {
        let bytes = self.bytes(path).map_err(|reason| {
            let reason = reason
                .split_once(": ")
                .map_or(reason.clone(), |(_, why)| format!("cannot read: {why}"));
            Error {
                file: path.to_owned(),
                line: 0,
                field: String::new(),
                reason,
            }
        })?;
        weir_settings::yaml(path, bytes)
    }
}

/// Reads and checks the configuration file.
pub(super) fn file(path: &Path, reader: &mut Reader) -> Result<Config, Error> {
    let written: written::File = reader.yaml(path)?;
    let root = Scope::root(path);
    let xds = xds(&written.xds, &root.section("xds"), reader)?;
    let admin = admin(&written.admin, &root.section("admin"))?;
    let replicas = match &written.replicas {
        Some(section) => {
            let scope = root.section("replicas").at(section.referenced.line());
            let checked = replicas::replicas(&section.value, &xds, &scope, reader)?;
            Some(Arc::new(checked))
        }
        None => None,
    };
    let reports = reports(&written.reports, &root.section("reports"))?;
    let discovery = discovery(
        &written.discovery,
        reports.max_proxies,
        &root.section("discovery"),
    )?;
    let clusters = clusters(&written, &root, reader)?;
    let (publish, table_bytes_per_second, cache_bytes_per_second) =
        publish(&written.publish, &root.section("publish"))?;
    stay_fresh(
        publish,
        &clusters,
        &written.publish,
        &root.section("publish"),
    )?;
    let config = Config {
        xds,
        admin,
        publish,
        table_bytes_per_second,
        cache_bytes_per_second,
        reports,
        discovery,
        memory_limit: memory_limit(&written.memory, &root.section("memory"))?,
        receipts: receipts(&written.receipts, &root.section("receipts"))?,
        clusters,
        standalone: None,
        policies: match &written.policies {
            None => None,
            Some(section) => {
                let scope = root.section("policies").at(section.referenced.line());
                Some(policies::policies(&section.value, &scope, reader)?)
            }
        },
        replicas,
        authorization: None,
        certificates: std::mem::take(&mut reader.certificates),
    };
    let config = Config {
        authorization: match &written.authorization {
            None => None,
            Some(section) => {
                let scope = root.section("authorization").at(section.referenced.line());
                let rules = authorization::authorization(&section.value, &config, &scope)?;
                Some(Arc::new(rules))
            }
        },
        ..config
    };
    standalone(&written, config, &root, reader)
}

/// The time between two tables, and bytes a second of tables and of cache contents.
fn publish(
    written: &written::Publish,
    scope: &Scope<'_>,
) -> Result<(Duration, usize, usize), Error> {
    // Less than a sidecar's tick, which it waits for anyway.
    let interval = scope.duration(&written.interval, "interval", ms(20), ms(10)..=ms(10_000))?;
    let table_bytes = scope.size(
        &written.table_bytes_per_second,
        "table_bytes_per_second",
        weir_fleet::settings::TABLE_BYTES_PER_SECOND,
        1 << 10..=1 << 30,
    )?;
    // Ten thousand keys are pushed again after 0.2 s.
    let bytes = scope.size(
        &written.cache_bytes_per_second,
        "cache_bytes_per_second",
        weir_fleet::settings::CACHE_BYTES_PER_SECOND,
        1 << 10..=1 << 30,
    )?;
    Ok((interval, table_bytes, bytes))
}

/// Whether each cluster's table is pushed again before it is old.
fn stay_fresh(
    publish: Duration,
    clusters: &BTreeMap<String, Arc<Cluster>>,
    written: &written::Publish,
    scope: &Scope<'_>,
) -> Result<(), Error> {
    let stale_after = |(_, cluster): &(&String, &Arc<Cluster>)| cluster.policy.stale_after;
    let is_old = |cluster: &(&String, &Arc<Cluster>)| publish * 3 > stale_after(cluster);
    let Some(cluster) = clusters.iter().find(is_old) else {
        return Ok(());
    };
    let (name, stale_after) = (cluster.0, stale_after(&cluster));
    let reason = format!(
        "{publish:?} is more than a third of clusters.{name}.policy.stale_after, which is {stale_after:?}: sidecars \
         would take its tables for old"
    );
    Err(scope.refuse(&written.interval, "interval", reason))
}

fn memory_limit(written: &written::Memory, scope: &Scope<'_>) -> Result<Option<usize>, Error> {
    match &written.limit {
        None => Ok(None),
        limit => scope.size(limit, "limit", 0, 1 << 20..=1 << 40).map(Some),
    }
}

fn receipts(written: &written::Receipts, scope: &Scope<'_>) -> Result<Option<ReceiptFiles>, Error> {
    scope.note("file", "path", None, None);
    // Some hundred thousand receipts.
    let max_size = scope.size(&written.max_size, "max_size", 64 << 20, 64 << 10..=1 << 40)?;
    let keep = scope.whole(&written.keep, "keep", 4, 0..=100)? as u32;
    let file = written.file.as_ref().map(|name| {
        let file = beside(scope.file(), &name.value);
        let is_here = |folder: &Path| folder == Path::new("") || folder.is_dir();
        match file.parent().is_some_and(is_here) && !file.is_dir() {
            true => Ok(file),
            false => Err(scope.refuse(
                &written.file,
                "file",
                "is a folder, or in none that is there",
            )),
        }
    });
    Ok(file.transpose()?.map(|file| ReceiptFiles {
        file,
        max_size,
        keep,
    }))
}

fn admin(written: &written::Admin, scope: &Scope<'_>) -> Result<SocketAddr, Error> {
    let listen = scope.address(&written.listen, "listen", "127.0.0.1:19000")?;
    let plaintext = scope.boolean(&written.plaintext, "plaintext", false)?;
    if !listen.ip().is_loopback() && !plaintext {
        return Err(scope.refuse(
            &written.listen,
            "listen",
            "not loopback, and admin has no TLS; write plaintext: true if anyone who reaches it may read it",
        ));
    }
    Ok(listen)
}

fn clusters(
    written: &written::File,
    root: &Scope<'_>,
    reader: &mut Reader,
) -> Result<BTreeMap<String, Arc<Cluster>>, Error> {
    if written.clusters.is_empty() && written.policies.is_none() {
        let reason = "names no cluster; at least one is needed, or policies";
        return Err(root.refuse(&None, "clusters", reason));
    }
    let clusters = root.section("clusters");
    let mut checked = BTreeMap::new();
    for (name, cluster) in &written.clusters {
        let scope = clusters.section(name).at(cluster.referenced.line());
        let cluster = cluster::cluster(name, &cluster.value, &scope, reader)?;
        checked.insert(name.clone(), Arc::new(cluster));
    }
    Ok(checked)
}

fn reports(written: &written::Reports, scope: &Scope<'_>) -> Result<ReportLimits, Error> {
    Ok(ReportLimits {
        max_proxies: scope.whole(&written.max_proxies, "max_proxies", 10_000, 1..=100_000)?
            as usize,
        max_vms: scope.whole(&written.max_vms, "max_vms", 256, 1..=4096)? as usize,
        // About 20 bytes each: a gigabyte, which a thousand sidecars of two workers take that send 250 ranks to
        // each of a hundred hosts.
        max_rows: scope.whole(
            &written.max_rows,
            "max_rows",
            50_000_000,
            1_000..=1_000_000_000,
        )? as usize,
        // A quarter of a megabyte of each of a thousand sidecars: each sends at most one at a time.
        max_waiting_bytes: scope.size(
            &written.max_waiting_bytes,
            "max_waiting_bytes",
            256 << 20,
            (16 << 20)..=(1 << 40),
        )?,
        forget_after: scope.duration(
            &written.forget_after,
            "forget_after",
            ms(60_000),
            ms(1000)..=ms(86_400_000),
        )?,
    })
}

fn discovery(
    written: &written::Discovery,
    proxies: usize,
    scope: &Scope<'_>,
) -> Result<DiscoveryLimits, Error> {
    let default = DiscoveryLimits::for_proxies(proxies);
    Ok(DiscoveryLimits {
        max_streams: scope.whole(
            &written.max_streams,
            "max_streams",
            default.max_streams as u64,
            1..=1_000_000,
        )? as usize,
        max_streams_per_proxy: scope.whole(
            &written.max_streams_per_proxy,
            "max_streams_per_proxy",
            default.max_streams_per_proxy as u64,
            2..=1_000_000,
        )? as usize,
        max_stream_bytes: scope.size(
            &written.max_stream_bytes,
            "max_stream_bytes",
            default.max_stream_bytes,
            1 << 10..=1 << 30,
        )?,
        max_bytes: scope.size(
            &written.max_bytes,
            "max_bytes",
            default.max_bytes,
            1 << 20..=1 << 40,
        )?,
    })
}

fn standalone(
    written: &written::File,
    config: Config,
    root: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Config, Error> {
    let Some(section) = &written.standalone else {
        return Ok(config);
    };
    let names: Vec<&str> = config.clusters.keys().map(String::as_str).collect();
    let scope = root.section("standalone").at(section.referenced.line());
    let checked = section
        .value
        .check(&names)
        .map_err(|(field, reason)| scope.refuse(&None, &field, reason))?;
    let folder = beside(root.file(), "");
    let code = Code::load(&checked, &folder)
        .map_err(|error| scope.refuse(&None, "filter.wasm", with_sources(&error)))?;
    if let Code::Inline(_) = code {
        // So that a new build of the filter is noticed.
        reader
            .bytes(&folder.join(&checked.code))
            .map_err(|why| scope.refuse(&None, "filter.wasm", why))?;
    }
    let standalone = Standalone::new(&checked, code, names.iter().copied());
    Ok(Config {
        standalone: Some(Arc::new(standalone)),
        ..config
    })
}

fn xds(written: &written::Xds, scope: &Scope<'_>, reader: &mut Reader) -> Result<Xds, Error> {
    let listen = scope.address(&written.listen, "listen", "127.0.0.1:18000")?;
    let plaintext = scope.boolean(&written.plaintext, "plaintext", false)?;
    let tls = match &written.tls {
        Some(tls) if plaintext => {
            let scope = scope.at(tls.referenced.line());
            return Err(scope.refuse(
                &written.plaintext,
                "plaintext",
                "contradicts xds.tls; leave one out",
            ));
        }
        Some(section) => Some(tls(
            &section.value,
            &scope.section("tls").at(section.referenced.line()),
            reader,
        )?),
        None if !listen.ip().is_loopback() && !plaintext => {
            return Err(scope.refuse(
                &written.listen,
                "listen",
                "not loopback: xds.tls is required, or plaintext: true if the network is protected by other means",
            ));
        }
        None => None,
    };
    Ok(Xds { listen, tls })
}

fn tls(written: &written::Tls, scope: &Scope<'_>, reader: &mut Reader) -> Result<Tls, Error> {
    let mut pem = |value, field, label| pem(value, field, label, scope, reader);
    let certificate = pem(&written.certificate, "certificate", "CERTIFICATE")?;
    let key = pem(&written.key, "key", "PRIVATE KEY")?;
    let client_ca = pem(&written.client_ca, "client_ca", "CERTIFICATE")?;
    let required = |bytes: Option<Vec<u8>>, field: &str| {
        bytes.ok_or_else(|| scope.refuse(&None, field, "required; the name of a PEM file"))
    };
    let tls = Tls {
        certificate: required(certificate, "certificate")?,
        key: required(key, "key")?,
        client_ca,
    };
    // The library refuses a bad pair here, before any port is bound.
    crate::tls::acceptor(&tls)
        .map_err(|why| scope.refuse(&written.certificate, "certificate", why))?;
    Ok(tls)
}

/// The contents of a PEM file; none where none is named.
fn pem(
    value: &Option<written::Text>,
    field: &str,
    label: &str,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Option<Vec<u8>>, Error> {
    scope.note(field, "path", None, None);
    let Some(text) = value else { return Ok(None) };
    let bytes = reader
        .bytes(&beside(scope.file(), &text.value))
        .map_err(|why| scope.refuse(value, field, why))?;
    let found = String::from_utf8_lossy(&bytes)
        .lines()
        .any(|line| line.starts_with("-----BEGIN") && line.contains(label));
    if !found {
        let reason = format!("{} has no {label} in PEM", text.value);
        return Err(scope.refuse(value, field, reason));
    }
    if label == "CERTIFICATE"
        && let Some(validity) = validity(&bytes)
    {
        reader.certificates.insert(scope.name(field), validity);
    }
    Ok(Some(bytes))
}

/// A path in a file is relative to that file's folder.
fn beside(file: &Path, path: &str) -> PathBuf {
    file.parent()
        .map_or_else(|| PathBuf::from(path), |folder| folder.join(path))
}
