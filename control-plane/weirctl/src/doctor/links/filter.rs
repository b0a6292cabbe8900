// SPDX-License-Identifier: Apache-2.0
//! Weir's filter: there, with settings that name clusters of this Envoy, and running.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::evidence::{Connections, Envoy, Plugin, Shell};
use super::super::finding::{Finding, Look};
use super::listed;
use crate::screen::counted;

pub(super) fn look(envoy: &Envoy) -> Vec<Finding> {
    let mut found = is_there(envoy);
    let plugins = envoy.plugins();
    let callers = plugins.filter(|(_, plugin)| is_of_callers(plugin));
    for (connections, plugin) in callers {
        found.extend(settings(envoy, connections, plugin));
    }
    found.extend(runs(envoy));
    found
}

/// Not of the hosts' side.
pub(super) fn is_of_callers(plugin: &Plugin) -> bool {
    let role = plugin.settings.as_ref().ok();
    let role = role.and_then(|settings| settings["role"].as_str());
    role.is_none_or(|role| role == "caller")
}

fn is_there(envoy: &Envoy) -> Vec<Finding> {
    let mut look = Look::at("filter", &envoy.node);
    for one in &envoy.connections {
        if !one.awaited.is_empty() {
            let names = listed(one.awaited.iter().map(String::as_str));
            look.broken(
                format!("listener {:?} waits for filter {names}, which has not come", one.listener),
                "see that the module's file or address is right where the filter is configured (ECDS), and Envoy's log",
            );
        }
    }
    let separate = envoy.connections.iter().flat_map(|one| &one.separate);
    for name in separate.collect::<BTreeSet<_>>() {
        let start = format!("extension_config_discovery.http_filter.{name}");
        let count = |what: &str| envoy.stats.count(&format!("{start}.{what}"));
        let rejected = format!("{start}.update_rejected");
        let grows = envoy.growth(|stats| stats.count(&rejected)) > 0;
        // The dump has when one came last, and `update_time` when one was accepted last.
        let came = envoy.came_unix_ms.get(name).copied();
        let is_older = came.is_some_and(|came| came > count("update_time"));
        let in_force = match (count("update_rejected"), count("update_success")) {
            (0, _) => continue,
            (_, 0) => "requests are answered 500",
            _ if grows || is_older => "an older one is in force",
            (many, _) => {
                look.poor(
                    format!(
                        "filter {name:?} was refused {many} times since Envoy's start, but not when it came last"
                    ),
                    "nothing, if that was mended: Envoy's log has the reasons",
                );
                continue;
            }
        };
        look.broken(
            format!("filter {name:?} came and was refused, so {in_force}"),
            "Envoy's log has the reason: most often the module's file is not where the filter says",
        );
    }
    let there: Vec<_> = envoy.plugins().map(|(one, _)| &*one.listener).collect();
    let awaits = envoy.connections.iter().any(|one| !one.awaited.is_empty());
    if there.is_empty() && !awaits {
        let listeners = envoy.connections.iter().map(|one| &*one.listener);
        look.broken(
            format!(
                "no HTTP filter has root_id \"weir\", or filter_name as a dynamic module; HTTP listeners: {}",
                listed(listeners)
            ),
            "add it before the router: part 2 of envoy-config/static/envoy.yaml",
        );
    }
    for (one, plugin) in envoy.plugins() {
        if !one.request_timeout {
            look.poor(
                format!(
                    "listener {:?} has no request_timeout: requests that a VM holds when it panics never end",
                    one.listener
                ),
                "set it: part 1 of envoy-config/static/envoy.yaml",
            );
        }
        if plugin.shell == (Shell::Wasm { reloads: false }) {
            look.poor(
                format!("plugin {:?} has not failure_policy FAIL_RELOAD: a VM that panics once stays dead", plugin.name),
                "set it: part 2 of envoy-config/static/envoy.yaml",
            );
        }
    }
    look.or_fine(format!("in {}", listed(there)))
}

fn settings(envoy: &Envoy, connections: &Connections, plugin: &Plugin) -> Vec<Finding> {
    let mut look = Look::at("filter's settings", &envoy.node);
    if let Err(reason) = &plugin.settings {
        look.broken(
            format!("the plugin's configuration is no JSON: {reason}"),
            "mend it; filters/host-choice/CONFIGURATION.md has every field",
        );
        return look.or_fine("");
    }
    let named: BTreeSet<&str> = plugin.clusters().map(|(name, ..)| name).collect();
    if named.is_empty() {
        look.broken(
            "the plugin's configuration names no cluster, so every request is left to Envoy",
            "write clusters: {\"NAME\": {\"table\": \"weir-control's NAME\"}}",
        );
    }
    let there = || listed(envoy.clusters.keys().map(String::as_str));
    for name in named.iter().filter(|name| **name != "*") {
        if !envoy.clusters.contains_key(*name) {
            look.broken(
                format!("the plugin's configuration names cluster {name:?}, which this Envoy has not; it has {}", there()),
                "write Envoy's name of the cluster; /clusters of its admin pages lists them",
            );
        }
    }
    let routed = connections
        .routes
        .iter()
        .flat_map(|route| &route.clusters)
        .map(String::as_str)
        .collect::<BTreeSet<_>>();
    // A mesh puts the filter into every outbound listener, with one configuration: one of them is enough.
    let elsewhere = envoy.plugins().any(|(other, one)| {
        let mut clusters = other.routes.iter().flat_map(|route| &route.clusters);
        one.settings == plugin.settings && clusters.any(|name| named.contains(&**name))
    });
    let known = !named.contains("*") && !routed.is_empty() && !elsewhere;
    if known && !named.is_empty() && routed.is_disjoint(&named) {
        look.broken(
            format!(
                "listener {:?} routes to {}, none of which the plugin's configuration names: every request is left to Envoy",
                connections.listener,
                listed(routed.iter().copied())
            ),
            "name the cluster that routes choose",
        );
    }
    for (name, _, cluster) in plugin.clusters() {
        if cluster["enabled"] == Value::Bool(false) {
            look.poor(
                format!("cluster {name:?} is switched off (enabled: false), so Envoy chooses"),
                "set enabled to true, or leave it out, once that is wanted",
            );
        }
    }
    look.or_fine(format!("for {}", listed(named)))
}

fn runs(envoy: &Envoy) -> Vec<Finding> {
    if envoy.plugins().next().is_none() {
        return Vec::new();
    }
    let mut look = Look::at("filter runs", &envoy.node);
    let stats = &envoy.stats;
    let is_native = |plugin: &Plugin| plugin.shell == Shell::Native;
    let needs_vms = envoy.plugins().any(|(_, plugin)| !is_native(plugin));
    let vms = stats.count("wasm.envoy.wasm.runtime.v8.active");
    if needs_vms && vms == 0 {
        look.broken(
            "no VM runs the module",
            "see Envoy's log for `wasm`: this Envoy may be built without V8, or the module be another program",
        );
    }
    let names: BTreeSet<&str> = envoy.plugins().map(|(_, one)| &*one.name).collect();
    for name in names {
        let reloads = stats.count(&format!("wasm.{name}.vm_reload"));
        if reloads > 0 {
            look.poor(
                format!("{reloads} VMs of plugin {name:?} have panicked and were replaced"),
                "Envoy's log has the panic at level critical: report it, with the request that did it",
            );
        }
    }
    let decisions = stats.filter("weir_decisions_total");
    if (vms > 0 || !needs_vms) && decisions == 0 {
        look.poor(
            "it has decided nothing yet",
            "send a request through the listener, and ask again; if this stays, requests take another listener",
        );
    }
    let shell = match needs_vms {
        true => counted(vms as usize, "VM"),
        false => "a dynamic module".to_owned(),
    };
    look.or_fine(format!(
        "{shell}, {}",
        counted(decisions as usize, "decision")
    ))
}
