// SPDX-License-Identifier: Apache-2.0
//! What Weir puts into entries: the filter, retries, clusters.

use serde_json::{Value, json};

use crate::weir::Module;

/// Names of clusters end with both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datacenter {
    /// `dc1`.
    pub name: String,
    /// `/v1/connect/ca/roots` says it.
    pub trust_domain: String,
}

impl Datacenter {
    /// Envoy's name of a service's cluster.
    #[must_use]
    pub fn cluster(&self, service: &str) -> String {
        let Self { name, trust_domain } = self;
        format!("{service}.default.{name}.internal.{trust_domain}")
    }
}

/// The plugin's name, its root and its VM. Never another, in no release: shared data is found by the VM's.
pub(crate) const PLUGIN: &str = "weir";
/// The header that the filter writes.
const DESTINATION: &str = "x-gateway-destination-endpoint";

/// Retries, without a service-router: it would switch the override of the cluster off. The next try goes to the
/// next host of the list. What reached a host's work is not tried again.
const RETRIES: &str = r#"function envoy_on_request(request)
  local headers = request:headers()
  if headers:get("x-envoy-retry-on") == nil then
    headers:add("x-envoy-retry-on", "connect-failure,refused-stream,reset-before-request")
    headers:add("x-envoy-max-retries", "2")
  end
end"#;

/// The filter in a caller's sidecar.
pub(crate) fn filter(module: &Module, settings: &Value) -> Value {
    let code = match module {
        Module::File(path) => json!({"Local": {"Filename": path}}),
        Module::Remote {
            service,
            url,
            sha256,
        } => json!({"Remote": {
            // Envoy's time-out is 1 s if none is given; the module is a megabyte.
            "HttpURI": {"Service": {"Name": service}, "URI": url, "Timeout": "10s"},
            "SHA256": sha256,
            "RetryPolicy": {"NumRetries": 5},
        }}),
    };
    json!({
        "Name": "builtin/wasm",
        // Fail open: a worker whose VM has died goes on without the filter, until the sidecar gets another
        // configuration or is started again. `true` would be 503 for ever.
        "Required": false,
        "Arguments": {
            "Protocol": "http",
            "ListenerType": "outbound",
            "PluginConfig": {
                "Name": PLUGIN,
                "RootID": PLUGIN,
                "VmConfig": {"VmID": PLUGIN, "Runtime": "v8", "Code": code},
                "Configuration": document(settings),
            },
        },
    })
}

/// The extension of [`RETRIES`].
pub(crate) fn retries() -> Value {
    json!({
        "Name": "builtin/lua",
        "Arguments": {"ProxyType": "connect-proxy", "Listener": "outbound", "Script": RETRIES},
    })
}

/// Whether an extension is Weir's, also as a hand has changed it.
#[must_use]
pub fn is_ours(extension: &Value) -> bool {
    let arguments = &extension["Arguments"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match extension["Name"].as_str() {
        Some("builtin/wasm") => arguments["PluginConfig"]["Name"] == PLUGIN,
        Some("builtin/lua") => text(&arguments["Script"]).contains("x-envoy-retry-on"),
        _ => false,
    }
}

/// Whether a cluster of an override is Weir's, also as a hand has changed it.
pub(crate) fn is_our_cluster(cluster: &Value) -> bool {
    let is_control = || *cluster == control(cluster["name"].as_str().unwrap_or_default());
    cluster.to_string().contains(DESTINATION) || is_control()
}

/// The hosts' cluster, which follows the filter's choice.
///
/// The whole cluster, because Consul cannot patch its balancer alone. Consul adds mTLS. What Consul's own copy of
/// Envoy's API does not know goes in a TypedStruct: an `@type` of it breaks the sidecar's configuration stream.
pub(crate) fn hosts(name: &str) -> Value {
    let mut cluster = cluster(name);
    cluster["load_balancing_policy"] = json!({"policies": [{"typed_extension_config": {
        "name": "envoy.load_balancing_policies.override_host",
        "typed_config": typed_struct(
            "envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost",
            json!({
                "override_host_sources": [{"header": DESTINATION}],
                "fallback_policy": {"policies": [{"typed_extension_config": {
                    "name": "envoy.load_balancing_policies.least_request",
                    "typed_config": {
                        "@type": of("envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest"),
                    },
                }}]},
            }),
        ),
    }}]});
    let removed = json!({
        "@type": of("envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"),
        "mutations": {"request_mutations": [{"remove": DESTINATION}]},
    });
    let codec =
        json!({"@type": of("envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec")});
    let options = json!({
        "explicit_http_config": {"http_protocol_options": {}},
        "http_filters": [
            {"name": "envoy.filters.http.header_mutation", "typed_config": removed},
            {"name": "envoy.filters.http.upstream_codec", "typed_config": codec},
        ],
    });
    cluster["typed_extension_protocol_options"] = json!({OPTIONS: typed_struct(OPTIONS, options)});
    let most = 100_000;
    cluster["circuit_breakers"] = json!({"thresholds": [{
        "max_connections": most, "max_pending_requests": most, "max_requests": most, "max_retries": most,
    }]});
    cluster
}

/// weir-control's cluster. Only to be noticed when it is frozen, or the network between drops everything: in 7 s
/// instead of never.
pub(crate) fn control(name: &str) -> Value {
    let mut cluster = cluster(name);
    cluster["typed_extension_protocol_options"] = control_options();
    cluster
}

/// Whoever is asked for tables has to show signs of life.
pub(crate) fn control_options() -> Value {
    json!({OPTIONS: {
        "@type": of(OPTIONS),
        "explicit_http_config": {
            "http2_protocol_options": {"connection_keepalive": {"interval": "5s", "timeout": "2s"}},
        },
    }})
}

const OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

fn cluster(name: &str) -> Value {
    json!({
        "@type": of("envoy.config.cluster.v3.Cluster"),
        "name": name,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": {"ads": {}, "resource_api_version": "V3"}},
        "connect_timeout": "1s",
    })
}

fn typed_struct(of_type: &str, value: Value) -> Value {
    json!({"@type": of("xds.type.v3.TypedStruct"), "type_url": of(of_type), "value": value})
}

fn of(name: &str) -> String {
    format!("type.googleapis.com/{name}")
}

/// As Consul keeps it: a string that people read too.
pub(crate) fn document(value: &Value) -> String {
    format!("{value:#}")
}
