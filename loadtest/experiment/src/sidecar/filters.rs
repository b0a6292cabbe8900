// SPDX-License-Identifier: Apache-2.0
//! HTTP filters.

use std::path::Path;

use serde_json::{Value, json};

/// A WebAssembly module, in the same kind of VM whatever it does.
pub fn wasm(name: &str, module: &Path, configuration: &Value) -> Value {
    json!({
        "name": name,
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
            "config": {
                "name": name,
                "root_id": name,
                "failure_policy": "FAIL_RELOAD",
                "reload_config": {"backoff": {"base_interval": "0.05s"}},
                "vm_config": {
                    "vm_id": name,
                    "runtime": "envoy.wasm.runtime.v8",
                    "code": {"local": {"filename": module}},
                },
                "configuration": {
                    "@type": "type.googleapis.com/google.protobuf.StringValue",
                    "value": configuration.to_string(),
                },
            },
        },
    })
}

/// A dynamic module.
pub fn native(name: &str, module: &Path, configuration: &Value) -> Value {
    json!({
        "name": name,
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
            "dynamic_module_config": {
                "module": {"local": {"filename": module}},
                "do_not_close": true,
            },
            "filter_name": name,
            "filter_config": {
                "@type": "type.googleapis.com/google.protobuf.StringValue",
                "value": configuration.to_string(),
            },
        },
    })
}

/// A script in Lua.
pub fn lua(source: &str) -> Value {
    json!({
        "name": "envoy.filters.http.lua",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
            "default_source_code": {"inline_string": source},
        },
    })
}

/// What an external processor is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The caller's `x-weir-` headers: as little as a decision needs.
    WeirHeaders,
    /// The same, and that there is an answer.
    WeirHeadersAndAnswers,
    /// Headers and bodies, both ways, as the inference gateway's picker demands.
    Everything,
}

/// A server that is asked, behind the cluster of this name.
pub fn ext_proc(cluster: &str, sent: Sent) -> Value {
    let mut config = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
        "grpc_service": {"envoy_grpc": {"cluster_name": cluster}},
        "message_timeout": "300s",
    });
    match sent {
        Sent::WeirHeaders | Sent::WeirHeadersAndAnswers => {
            let answers = match sent {
                Sent::WeirHeadersAndAnswers => "SEND",
                _ => "SKIP",
            };
            config["processing_mode"] = json!({
                "request_header_mode": "SEND",
                "response_header_mode": answers,
                "request_body_mode": "NONE",
                "response_body_mode": "NONE",
                "request_trailer_mode": "SKIP",
                "response_trailer_mode": "SKIP",
            });
            config["forward_rules"] =
                json!({"allowed_headers": {"patterns": [{"prefix": "x-weir-"}]}});
        }
        Sent::Everything => {
            config["processing_mode"] = json!({
                "request_header_mode": "SEND",
                "response_header_mode": "SEND",
                // Buffered bodies would hang: it answers to headers only after the whole body.
                "request_body_mode": "FULL_DUPLEX_STREAMED",
                "response_body_mode": "FULL_DUPLEX_STREAMED",
                "request_trailer_mode": "SEND",
                "response_trailer_mode": "SEND",
            });
        }
    }
    json!({"name": "envoy.filters.http.ext_proc", "typed_config": config})
}

pub(super) fn router() -> Value {
    json!({
        "name": "envoy.filters.http.router",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
        },
    })
}
