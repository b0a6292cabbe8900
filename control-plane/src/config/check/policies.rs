// SPDX-License-Identifier: Apache-2.0
//! Clusters that are written as WeirPolicies: where these are, and what one of them says.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use serde_saphyr::{Location, Spanned};
use weir_settings::Scope;

use super::Reader;
use super::cluster::cluster;
use super::dns::port;
use super::kubernetes::{access, label, service_port};
use crate::config::policies::{POOLS, Policies, Target};
use crate::config::{Access, Cluster, Error, Kubernetes, Registry, written};

/// Of one policy: as many as its status has room for (gateway-api.sigs.k8s.io/geps/gep-713).
const MOST_TARGETS: usize = 16;

/// Bytes of a `spec`: one of every field that there is takes a tenth.
const LONGEST: usize = 64 << 10;

pub(super) fn policies(
    written: &written::Policies,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Policies, Error> {
    let names = scope.section("namespaces");
    let mut namespaces = Vec::new();
    for (index, name) in written.namespaces.iter().enumerate() {
        let scope = names.item(index);
        namespaces.push(label(&Some(name.clone()), "", "", &scope)?);
    }
    if namespaces.is_empty() {
        let reason = "required; the namespaces whose WeirPolicies count";
        return Err(scope.refuse(&None, "namespaces", reason));
    }
    namespaces.sort();
    namespaces.dedup();
    Ok(Policies {
        namespaces,
        access: access(&written.kubeconfig, scope, reader)?,
    })
}

/// By name.
pub(crate) type Clusters = Vec<(String, Arc<Cluster>)>;

/// What a policy says.
pub(crate) struct Read {
    /// As far as they could be read.
    pub(crate) targets: Vec<Target>,
    /// One for each target. `Access` says who asks for their hosts.
    pub(crate) clusters: Result<Clusters, Error>,
}

/// Reads the `spec` of the policy `id` of this namespace.
pub(crate) fn read(id: &str, namespace: &str, spec: &Value, access: &Access) -> Read {
    let named = format!("WeirPolicy {id}");
    let file = Path::new(&named);
    let mut targets = Vec::new();
    let clusters = clusters(file, namespace, spec, access, &mut targets);
    // What line it is in is of no use: the server has written it anew.
    let clusters = clusters.map_err(|error| Error { line: 0, ..error });
    Read { targets, clusters }
}

fn clusters(
    file: &Path,
    namespace: &str,
    spec: &Value,
    access: &Access,
    targets: &mut Vec<Target>,
) -> Result<Clusters, Error> {
    let scope = Scope::root(file).section("spec");
    let text = spec.to_string();
    if text.len() > LONGEST {
        let reason = format!("longer than {LONGEST} bytes");
        return Err(scope.refuse(&None, "", reason));
    }
    let written: written::WeirPolicy = weir_settings::yaml(file, text.into_bytes())?;
    port(&written.metrics_port, "metrics_port", &scope)?;
    let refs = scope.section("targetRefs");
    if !(1..=MOST_TARGETS).contains(&written.targetRefs.len()) {
        let reason = format!("1 to {MOST_TARGETS} are needed");
        return Err(refs.refuse(&None, "", reason));
    }
    for (index, written) in written.targetRefs.iter().enumerate() {
        targets.push(target(&written.value, &refs.item(index))?);
    }
    let mut clusters = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        let name = cluster_of(target, namespace);
        if clusters.iter().any(|(taken, _)| *taken == name) {
            let reason = format!("{name} is named twice");
            return Err(refs.item(index).refuse(&None, "name", reason));
        }
        let written = of_target(&written, target, namespace);
        let mut cluster = cluster(&name, &written, &scope, &mut Reader::without_files())?;
        asked_by(&mut cluster, access);
        clusters.push((name, Arc::new(cluster)));
    }
    Ok(clusters)
}

/// How the filter and rules know a target.
pub(crate) fn cluster_of(target: &Target, namespace: &str) -> String {
    let (Target::Service(name, _) | Target::Pool(name)) = target;
    format!("{name}.{namespace}")
}

fn target(written: &written::TargetRef, scope: &Scope<'_>) -> Result<Target, Error> {
    let is_pool = scope.choice(
        &written.kind,
        "kind",
        false,
        &[("Service", false), ("InferencePool", true)],
    )?;
    let wanted = if is_pool { POOLS } else { "" };
    let group = written.group.as_ref().map_or("", |text| &text.value);
    if group != wanted {
        let reason = format!("{group:?} is not the group of this kind; write {wanted:?}");
        return Err(scope.refuse(&written.group, "group", reason));
    }
    let name = label(&written.name, "name", "", scope)?;
    if name.is_empty() {
        return Err(scope.refuse(&None, "name", "required; in the policy's namespace"));
    }
    if !is_pool {
        let port = service_port(&written.sectionName, "sectionName", scope)?;
        return Ok(Target::Service(name, port));
    }
    match &written.sectionName {
        None => Ok(Target::Pool(name)),
        named => {
            let reason = "an InferencePool says its ports itself; leave it out";
            Err(scope.refuse(named, "sectionName", reason))
        }
    }
}

/// As the cluster would be written in weir-control.yaml.
fn of_target(written: &written::WeirPolicy, target: &Target, namespace: &str) -> written::Cluster {
    let written::WeirPolicy {
        targetRefs: _,
        policy,
        dagor,
        cache_shards,
        planner,
        scrape,
        cache,
        metrics_port,
    } = written.clone();
    let text = |text: &str| Some(spanned(text.to_owned()));
    let (service, port, inference_pool) = match target {
        Target::Service(name, port) => (text(name), text(&port.to_string()), None),
        Target::Pool(name) => (None, None, text(name)),
    };
    let kubernetes = written::Kubernetes {
        service,
        inference_pool,
        namespace: text(namespace),
        port,
        metrics_port,
        kubeconfig: None,
    };
    written::Cluster {
        policy,
        dagor,
        cache_shards,
        planner,
        scrape,
        cache,
        kubernetes: Some(spanned(kubernetes)),
        ..Default::default()
    }
}

fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(value, Location::UNKNOWN, Location::UNKNOWN)
}

fn asked_by(cluster: &mut Cluster, access: &Access) {
    if let Some(Registry::Kubernetes(settings)) = &mut cluster.registry {
        *settings = Arc::new(Kubernetes {
            access: access.clone(),
            ..Kubernetes::clone(settings)
        });
    }
}

#[cfg(test)]
mod tests;
