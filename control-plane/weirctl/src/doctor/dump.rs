// SPDX-License-Identifier: Apache-2.0
//! What Envoy's `/config_dump` says of the parts that Weir needs, whoever gave them to it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::evidence::{Connections, Plugin, Route, Shell, Upstream};

/// The root of Weir's plugin in every configuration that the project has.
const ROOT: &str = "weir";
/// The header that names hosts.
pub(super) const DESTINATION: &str = "x-gateway-destination-endpoint";

/// Sections by the last part of their type. Envoy has two of some: of filters that come separately one for
/// listeners and one for clusters.
pub(super) struct Dump<'a>(BTreeMap<&'a str, Vec<&'a Value>>);

impl<'a> Dump<'a> {
    pub(super) fn new(page: &'a Value) -> Self {
        let sections = page["configs"].as_array().into_iter().flatten();
        let mut by_kind: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for section in sections {
            let kind = section["@type"].as_str().unwrap_or_default();
            let kind = kind.rsplit('.').next().unwrap_or_default();
            by_kind.entry(kind).or_default().push(section);
        }
        Self(by_kind)
    }

    fn sections(&self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.0.get(kind).cloned().unwrap_or_default().into_iter()
    }

    /// The entries of some lists of a section, by the path to what matters in each.
    fn entries(
        &self,
        section: &str,
        lists: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a Value> {
        let listed = self.sections(section).flat_map(move |section| {
            let of_list = move |(list, path): &(&str, &'a str)| {
                let entries = section[*list].as_array().into_iter().flatten();
                let path = *path;
                entries.filter_map(move |entry| entry.pointer(path))
            };
            lists.iter().flat_map(of_list)
        });
        listed.collect::<Vec<_>>().into_iter()
    }

    fn listeners(&self) -> impl Iterator<Item = &'a Value> {
        const LISTS: &[(&str, &str)] = &[
            ("static_listeners", "/listener"),
            ("dynamic_listeners", "/active_state/listener"),
        ];
        self.entries("ListenersConfigDump", LISTS)
    }

    /// What Envoy refused of what it was given, with its reason.
    pub(super) fn refused(&self) -> Vec<String> {
        let errors = [
            ("ListenersConfigDump", "dynamic_listeners"),
            ("ClustersConfigDump", "dynamic_active_clusters"),
            ("RoutesConfigDump", "dynamic_route_configs"),
            ("EcdsConfigDump", "ecds_filters"),
        ];
        let said = errors.iter().flat_map(|(section, list)| {
            self.sections(section).flat_map(|section| {
                let entries = section[*list].as_array().into_iter().flatten();
                entries.filter_map(|entry| entry["error_state"]["details"].as_str())
            })
        });
        said.map(str::to_owned).collect()
    }

    /// The connection managers of listeners, with the filters that come separately put in.
    pub(super) fn connections(&self) -> Vec<Connections> {
        let mut managers = Vec::new();
        for listener in self.listeners() {
            let name = listener["name"].as_str().unwrap_or("without a name");
            each(listener, &mut |part| {
                if is_a(part, "HttpConnectionManager") {
                    managers.push(self.manager(name, part));
                }
            });
        }
        managers
    }

    fn manager(&self, listener: &str, manager: &Value) -> Connections {
        let mut plugins = Vec::new();
        let (mut separate, mut awaited) = (Vec::new(), Vec::new());
        for filter in manager["http_filters"].as_array().into_iter().flatten() {
            let name = filter["name"].as_str().unwrap_or_default();
            let typed = match filter.get("config_discovery") {
                None => Some(&filter["typed_config"]),
                Some(_) => {
                    separate.push(name.to_owned());
                    self.discovered(name)
                }
            };
            match typed {
                Some(typed) => plugins.extend(plugin(typed)),
                None => awaited.push(name.to_owned()),
            }
        }
        let route_config = &manager["route_config"];
        let discovered = manager["rds"]["route_config_name"].as_str();
        let config = match discovered {
            Some(name) => self.route_config(name),
            None => route_config.is_object().then_some(route_config),
        };
        Connections {
            listener: listener.to_owned(),
            plugins,
            separate,
            awaited,
            request_timeout: manager["request_timeout"].is_string(),
            routes: config.map_or_else(Vec::new, routes),
        }
    }

    /// A filter that Envoy was given apart from its listener.
    fn discovered(&self, name: &str) -> Option<&'a Value> {
        const LISTS: &[(&str, &str)] = &[("ecds_filters", "/ecds_filter")];
        let mut filters = self.entries("EcdsConfigDump", LISTS);
        let filter = filters.find(|filter| filter["name"] == name)?;
        Some(&filter["typed_config"])
    }

    pub(super) fn came_unix_ms(&self) -> BTreeMap<String, u64> {
        let entries = self.sections("EcdsConfigDump");
        let entries = entries.flat_map(|section| section["ecds_filters"].as_array());
        let came = entries.flatten().filter_map(|entry| {
            let name = entry["ecds_filter"]["name"].as_str()?.to_owned();
            let time: jiff::Timestamp = entry["last_updated"].as_str()?.parse().ok()?;
            Some((name, u64::try_from(time.as_millisecond()).ok()?))
        });
        came.collect()
    }

    fn route_config(&self, name: &str) -> Option<&'a Value> {
        const LISTS: &[(&str, &str)] = &[
            ("static_route_configs", "/route_config"),
            ("dynamic_route_configs", "/route_config"),
        ];
        let mut configs = self.entries("RoutesConfigDump", LISTS);
        configs.find(|config| config["name"] == name)
    }

    pub(super) fn clusters(&self) -> BTreeMap<String, Upstream> {
        const LISTS: &[(&str, &str)] = &[
            ("static_clusters", "/cluster"),
            ("dynamic_active_clusters", "/cluster"),
        ];
        let clusters = self.entries("ClustersConfigDump", LISTS);
        let named = clusters.filter_map(|cluster| {
            let name = cluster["name"].as_str()?.to_owned();
            Some((name, upstream(cluster)))
        });
        named.collect()
    }
}

/// Every object below, itself included.
fn each<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    match value {
        Value::Object(fields) => {
            visit(value);
            fields.values().for_each(|field| each(field, visit));
        }
        Value::Array(all) => all.iter().for_each(|one| each(one, visit)),
        _ => {}
    }
}

fn is_a(part: &Value, kind: &str) -> bool {
    is_named(&part["@type"], kind)
}

fn is_named(url: &Value, kind: &str) -> bool {
    let name = url.as_str();
    name.and_then(|name| name.rsplit('.').next()) == Some(kind)
}

/// Type and fields of a part. A mesh wraps what its own copy of Envoy's API does not know, such as Consul this policy.
fn unwrapped(part: &Value) -> (&Value, &Value) {
    match is_a(part, "TypedStruct") {
        true => (&part["type_url"], &part["value"]),
        false => (&part["@type"], part),
    }
}

/// Weir's plugin, if this filter is it.
fn plugin(typed: &Value) -> Option<Plugin> {
    let config = &typed["config"];
    if is_a(typed, "Wasm") && config["root_id"] == ROOT {
        let reloads = config["failure_policy"] == "FAIL_RELOAD";
        Some(Plugin {
            name: config["name"].as_str().unwrap_or(ROOT).to_owned(),
            shell: Shell::Wasm { reloads },
            settings: settings(&config["configuration"]),
        })
    } else if is_a(typed, "DynamicModuleFilter") && typed["filter_name"] == ROOT {
        Some(Plugin {
            name: ROOT.to_owned(),
            shell: Shell::Native,
            settings: settings(&typed["filter_config"]),
        })
    } else {
        None
    }
}

fn settings(written: &Value) -> Result<Value, String> {
    // A StringValue or BytesValue holds text; a Struct is the JSON itself.
    let value = &written["value"];
    match value.as_str() {
        Some(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
        None if value.is_object() => Ok(value.clone()),
        None => Ok(Value::Object(serde_json::Map::new())),
    }
}

fn routes(config: &Value) -> Vec<Route> {
    let removes = |part: &Value| {
        let names = part["request_headers_to_remove"].as_array();
        names.is_some_and(|names| {
            let mut names = names.iter().filter_map(Value::as_str);
            names.any(|name| name.eq_ignore_ascii_case(DESTINATION))
        })
    };
    let mut found = Vec::new();
    for host in config["virtual_hosts"].as_array().into_iter().flatten() {
        for route in host["routes"].as_array().into_iter().flatten() {
            let action = &route["route"];
            let weighted = action["weighted_clusters"]["clusters"].as_array();
            let weighted = weighted.into_iter().flatten().map(|one| &one["name"]);
            let named = std::iter::once(&action["cluster"]).chain(weighted);
            let clusters: BTreeSet<_> =
                named.filter_map(Value::as_str).map(str::to_owned).collect();
            let retries = [&action["retry_policy"], &host["retry_policy"]];
            let retries = retries.into_iter().find(|policy| policy.is_object());
            let skips = retries.is_some_and(|policy| {
                let text = policy["retry_host_predicate"].to_string();
                text.contains("previous_hosts") || text.contains("PreviousHosts")
            });
            found.push(Route {
                clusters,
                drops_destination: removes(route) || removes(host) || removes(config),
                retries: retries.is_some(),
                skips_tried_hosts: skips,
            });
        }
    }
    found
}

fn upstream(cluster: &Value) -> Upstream {
    let policy = &cluster["load_balancing_policy"]["policies"][0]["typed_extension_config"];
    let (kind, typed) = unwrapped(&policy["typed_config"]);
    let sources = typed["override_host_sources"].as_array();
    let headers = sources.into_iter().flatten();
    let headers = headers.filter_map(|source| source["header"].as_str());
    let headers: Vec<_> = headers.map(str::to_owned).collect();
    let balances = match (policy["name"].as_str(), cluster["lb_policy"].as_str()) {
        (Some(name), _) => name.rsplit('.').next().unwrap_or(name).to_owned(),
        (None, Some(name)) => name.to_lowercase(),
        (None, None) => "round_robin".to_owned(),
    };
    let text = cluster.to_string();
    Upstream {
        balances,
        follows: is_named(kind, "OverrideHost"),
        reads_destination: headers.iter().any(|name| name == DESTINATION),
        headers,
        // A mutation that removes it, in an upstream filter.
        keeps_destination: !text.contains(&format!("\"remove\":\"{DESTINATION}\"")),
        http2: text.contains("http2_protocol_options"),
        tls: text.contains("UpstreamTlsContext"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_that_a_mesh_has_wrapped_is_the_same() {
        let fields = json!({"override_host_sources": [{"header": DESTINATION}]});
        let kind = "type.googleapis.com/envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost";
        let mut plain = fields.clone();
        plain["@type"] = kind.into();
        let wrapped = json!({
            "@type": "type.googleapis.com/xds.type.v3.TypedStruct", "type_url": kind, "value": fields,
        });
        for typed in [plain, wrapped] {
            let policy = json!({"name": "override_host", "typed_config": typed});
            let policies = json!([{"typed_extension_config": policy}]);
            let upstream = upstream(&json!({"load_balancing_policy": {"policies": policies}}));
            assert!(upstream.follows && upstream.reads_destination);
        }
    }
}
