# SPDX-License-Identifier: Apache-2.0
# The sidecars of a calling service choose hosts by Weir.
# Placeholders: see README.md.

Kind     = "service-defaults"
Name     = "@CALLER@"
Protocol = "http"

EnvoyExtensions = [
  {
    Name = "builtin/wasm"
    # Fail open: a worker whose VM has died goes on without the filter, until the sidecar gets another
    # configuration or is started again. `true` would be 503 for ever.
    Required = false
    Arguments = {
      Protocol     = "http"
      ListenerType = "outbound"
      PluginConfig = {
        Name   = "weir"
        RootID = "weir"
        VmConfig = {
          # Never another id, in no release: shared data is found by it.
          VmID    = "weir"
          Runtime = "v8"
          Code = {
            Local = {
              Filename = "@FILTER@"
            }
          }
        }
        # The reference is filters/host-choice/CONFIGURATION.md.
        Configuration = <<JSON
{
  "control_cluster": "@CONTROL_CLUSTER@",
  "clusters": { "@SERVICE@.default.@DATACENTER@.internal.@TRUST_DOMAIN@": { "table": "@SERVICE@" } },
  "debug": @DEBUG@
}
JSON
      }
    }
  },
  {
    # Retries, without a service-router: it would switch the override below off. The next try goes to
    # the next host of the list. What reached a host's work is not tried again.
    Name = "builtin/lua"
    Arguments = {
      ProxyType = "connect-proxy"
      Listener  = "outbound"
      Script    = <<LUA
function envoy_on_request(request)
  local headers = request:headers()
  if headers:get("x-envoy-retry-on") == nil then
    headers:add("x-envoy-retry-on", "connect-failure,refused-stream,reset-before-request")
    headers:add("x-envoy-max-retries", "2")
  end
end
LUA
    }
  }
]

UpstreamConfig = {
  Overrides = [
    {
      Name = "@SERVICE@"
      # The whole cluster, because Consul cannot patch its balancer alone. Consul adds mTLS. What Consul's
      # own copy of Envoy's API does not know goes in a TypedStruct: an `@type` of it breaks the sidecar's
      # configuration stream.
      EnvoyClusterJSON = <<JSON
{
  "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
  "name": "@SERVICE@.default.@DATACENTER@.internal.@TRUST_DOMAIN@",
  "type": "EDS",
  "eds_cluster_config": { "eds_config": { "ads": {}, "resource_api_version": "V3" } },
  "connect_timeout": "1s",
  "load_balancing_policy": { "policies": [{ "typed_extension_config": {
    "name": "envoy.load_balancing_policies.override_host",
    "typed_config": {
      "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
      "type_url": "type.googleapis.com/envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost",
      "value": {
        "override_host_sources": [{ "header": "x-gateway-destination-endpoint" }],
        "fallback_policy": { "policies": [{ "typed_extension_config": {
          "name": "envoy.load_balancing_policies.least_request",
          "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest"
          }
        } }] }
      }
    }
  } }] },
  "typed_extension_protocol_options": {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
      "type_url": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
      "value": {
        "explicit_http_config": { "http_protocol_options": {} },
        "http_filters": [
          { "name": "envoy.filters.http.header_mutation", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation",
            "mutations": { "request_mutations": [{ "remove": "x-gateway-destination-endpoint" }] }
          } },
          { "name": "envoy.filters.http.upstream_codec", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec"
          } }
        ]
      }
    }
  },
  "circuit_breakers": { "thresholds": [{
    "max_connections": 100000, "max_pending_requests": 100000, "max_requests": 100000, "max_retries": 100000
  }] }
}
JSON
    },
    {
      Name = "weir-control"
      # Only to be noticed when it is frozen, or the network between drops everything: in 7 s instead of never.
      EnvoyClusterJSON = <<JSON
{
  "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
  "name": "weir-control.default.@DATACENTER@.internal.@TRUST_DOMAIN@",
  "type": "EDS",
  "eds_cluster_config": { "eds_config": { "ads": {}, "resource_api_version": "V3" } },
  "connect_timeout": "1s",
  "typed_extension_protocol_options": {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
      "explicit_http_config": {
        "http2_protocol_options": { "connection_keepalive": { "interval": "5s", "timeout": "2s" } }
      }
    }
  }
}
JSON
    }
  ]
}
