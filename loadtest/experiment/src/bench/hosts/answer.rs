// SPDX-License-Identifier: Apache-2.0
//! What a host answers.

use std::convert::Infallible;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use crate::bench::hosts::keys;

/// The host's own address, so that whoever asked can see where the request came to.
const HOST: HeaderName = HeaderName::from_static("x-host");
/// Who named the host, and what was named, if the sidecar lets the header through.
const DESTINATION: HeaderName = HeaderName::from_static("x-gateway-destination-endpoint");
const NAMED: HeaderName = HeaderName::from_static("x-named");
/// Open Request Cost Aggregation: load on an answer.
const LOAD: HeaderName = HeaderName::from_static("endpoint-load-metrics");
/// Answers to this path carry the host's load.
const WITH_LOAD: &str = "/with-load";

const COMPLETION: &[u8] = br#"{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"ok","finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}"#;

pub(crate) struct Host {
    address: HeaderValue,
    keys: Vec<String>,
    /// Drawn by each start.
    epoch: u64,
    in_progress: AtomicU32,
}

impl Host {
    pub(crate) fn new(address: SocketAddr, keys: Vec<String>) -> Result<Self> {
        Ok(Self {
            address: address.to_string().try_into()?,
            keys,
            epoch: rand::random(),
            in_progress: AtomicU32::new(0),
        })
    }

    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        Ok(match request.uri().path() {
            "/metrics" => page("text/plain; version=0.0.4", self.metrics()),
            "/cache" => {
                let query = request.uri().query().unwrap_or_default();
                let contents = keys::page(&self.keys, self.epoch, query);
                page("application/json", contents.to_string())
            }
            _ => {
                self.in_progress.fetch_add(1, Ordering::Relaxed);
                let answer = self.work(request).await;
                self.in_progress.fetch_sub(1, Ordering::Relaxed);
                answer
            }
        })
    }

    async fn work(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, mut body) = request.into_parts();
        // What breaks off is nobody's to be answered.
        while let Some(Ok(_)) = body.frame().await {}
        let mut answer = match head.method {
            Method::POST => page("application/json", COMPLETION),
            _ => Response::new(Full::from("ok\n")),
        };
        let headers = answer.headers_mut();
        headers.insert(HOST, self.address.clone());
        if let Some(named) = head.headers.get(DESTINATION) {
            headers.insert(NAMED, named.clone());
        }
        if head.uri.path() == WITH_LOAD
            && let Ok(load) = self.load().try_into()
        {
            headers.insert(LOAD, load);
        }
        answer
    }

    fn load(&self) -> String {
        let in_progress = self.in_progress.load(Ordering::Relaxed);
        format!(
            "TEXT named_metrics.weir.in_progress={in_progress},named_metrics.weir.queued.0=0,\
             named_metrics.weir.queued.16=0,named_metrics.weir.queuing_delay_seconds=0"
        )
    }

    /// The gauges that weir-control reads, and those of vLLM, which the gateway's picker reads.
    /// Nothing ever waits here.
    fn metrics(&self) -> String {
        let in_progress = self.in_progress.load(Ordering::Relaxed);
        let mut page = String::new();
        let mut gauge = |name: &str, labels: &str, value: u32| {
            let _ = writeln!(page, "# TYPE {name} gauge\n{name}{labels} {value}");
        };
        gauge("weir_host_in_progress", "", in_progress);
        gauge("weir_host_queued", "{priority=\"0\"}", 0);
        gauge("vllm:num_requests_waiting", "{model_name=\"m\"}", 0);
        gauge(
            "vllm:num_requests_running",
            "{model_name=\"m\"}",
            in_progress,
        );
        gauge("vllm:kv_cache_usage_perc", "{model_name=\"m\"}", 0);
        gauge(
            "vllm:cache_config_info",
            "{block_size=\"16\",num_gpu_blocks=\"31250\"}",
            1,
        );
        gauge(
            "vllm:lora_requests_info",
            "{max_lora=\"0\",running_lora_adapters=\"\",waiting_lora_adapters=\"\"}",
            1,
        );
        page.push_str(
            "# TYPE weir_host_queuing_delay_seconds histogram\n\
             weir_host_queuing_delay_seconds_sum 0\n\
             weir_host_queuing_delay_seconds_count 0\n",
        );
        page
    }
}

fn page(kind: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(text.into()));
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
