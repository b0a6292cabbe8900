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
use crate::config::policies::{POOLS, Policies};
use crate::config::{Access, Backend, Cluster, Error, Kubernetes, Registry, written};
use crate::policies::object::LONGEST_SPEC;

/// Of one policy: as many as its status has room for (gateway-api.sigs.k8s.io/geps/gep-713).
pub(crate) const MOST_TARGETS: usize = 16;

/// Of a controller, by Gateway API (`GatewayController`): a domain and a path.
const CONTROLLER: &str = "weir.dev/weir-control";
const LONGEST_CONTROLLER: usize = 253;

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
        controller_name: scope.text(
            &written.controller_name,
            "controller_name",
            CONTROLLER,
            is_controller,
            "a domain and a path, as in weir.dev/weir-control",
        )?,
    })
}

fn is_controller(text: &str) -> bool {
    let is = |c: char, more: &str| c.is_ascii_alphanumeric() || more.contains(c);
    let parts = text.split_once('/');
    text.len() <= LONGEST_CONTROLLER
        && parts.is_some_and(|(domain, path)| {
            !domain.is_empty()
                && domain.chars().all(|c| is(c, "-."))
                && !path.is_empty()
                && path.chars().all(|c| is(c, "-._~/"))
        })
}

/// By name.
pub(crate) type Clusters = Vec<(String, Arc<Cluster>)>;

/// Reads the `spec` of the policy `id` of this namespace. `access` is who asks for hosts.
pub(crate) fn read(
    id: &str,
    namespace: &str,
    spec: Option<&Value>,
    access: &Access,
) -> Result<Clusters, Error> {
    let named = format!("WeirPolicy {id}");
    let clusters = clusters(Path::new(&named), namespace, spec, access);
    // What line it is in is of no use: the server has written it anew.
    clusters.map_err(|error| Error { line: 0, ..error })
}

fn clusters(
    file: &Path,
    namespace: &str,
    spec: Option<&Value>,
    access: &Access,
) -> Result<Clusters, Error> {
    let scope = Scope::root(file).section("spec");
    let Some(spec) = spec else {
        let reason = format!("longer than {LONGEST_SPEC} bytes");
        return Err(scope.refuse(&None, "", reason));
    };
    let written: written::WeirPolicy = weir_settings::yaml(file, spec.to_string().into_bytes())?;
    port(&written.metrics_port, "metrics_port", &scope)?;
    let refs = scope.section("targetRefs");
    if !(1..=MOST_TARGETS).contains(&written.targetRefs.len()) {
        let reason = format!("1 to {MOST_TARGETS} are needed");
        return Err(refs.refuse(&None, "", reason));
    }
    let mut targets = Vec::new();
    for (index, written) in written.targetRefs.iter().enumerate() {
        targets.push(target(&written.value, &refs.item(index))?);
    }
    let mut clusters = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        let (Backend::Service(name, _) | Backend::Pool(name)) = target;
        let name = cluster_of(name, namespace);
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
pub(crate) fn cluster_of(target: &str, namespace: &str) -> String {
    format!("{target}.{namespace}")
}

fn target(written: &written::TargetRef, scope: &Scope<'_>) -> Result<Backend, Error> {
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
        return Ok(Backend::Service(name, port));
    }
    match &written.sectionName {
        None => Ok(Backend::Pool(name)),
        named => {
            let reason = "an InferencePool says its ports itself; leave it out";
            Err(scope.refuse(named, "sectionName", reason))
        }
    }
}

/// As the cluster would be written in weir-control.yaml.
fn of_target(written: &written::WeirPolicy, target: &Backend, namespace: &str) -> written::Cluster {
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
        Backend::Service(name, port) => (text(name), text(&port.to_string()), None),
        Backend::Pool(name) => (None, None, text(name)),
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
