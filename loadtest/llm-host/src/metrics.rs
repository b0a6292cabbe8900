// SPDX-License-Identifier: Apache-2.0
//! What a host tells Prometheus: vLLM's gauges, and those of Weir's contract.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::engine::Settings;
use crate::load::{CLASS, Load};
use crate::sequence::Spent;

/// The metrics of one host.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    waiting: Gauge,
    running: Gauge,
    kv_usage: Gauge<f64, AtomicU64>,
    in_progress: Gauge,
    queued: Gauge,
    queuing_delay: Histogram,
    prefill: Histogram,
    decode: Histogram,
    cached_blocks: Gauge,
    evictions: Counter,
    prompt_tokens: Counter,
    hit_tokens: Counter,
}

impl Metrics {
    /// Everything at zero. `model` is the name that requests are to use.
    #[must_use]
    pub fn new(settings: &Settings, model: &str) -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            waiting: Gauge::default(),
            running: Gauge::default(),
            kv_usage: Gauge::default(),
            in_progress: Gauge::default(),
            queued: Gauge::default(),
            // 0.1 ms to 210 s, like the rule-processing host's.
            queuing_delay: Histogram::new(exponential_buckets(0.0001, 2.0, 22)),
            prefill: Histogram::new(exponential_buckets(0.0001, 2.0, 22)),
            decode: Histogram::new(exponential_buckets(0.0001, 2.0, 22)),
            cached_blocks: Gauge::default(),
            evictions: Counter::default(),
            prompt_tokens: Counter::default(),
            hit_tokens: Counter::default(),
        };
        metrics.register_vllm(settings, model);
        metrics.register_weir();
        metrics
    }

    /// Names as of vLLM 0.10; the endpoint picker of the Kubernetes inference gateway reads these.
    fn register_vllm(&mut self, settings: &Settings, model: &str) {
        let model = (Cow::Borrowed("model_name"), Cow::Owned(model.to_owned()));
        let r = self.registry.sub_registry_with_label(model);
        let waiting = "Requests that wait";
        r.register("vllm:num_requests_waiting", waiting, self.waiting.clone());
        let running = "Requests in prefill and decode";
        r.register("vllm:num_requests_running", running, self.running.clone());
        let waited = "Time from arrival to the begin of the prefill";
        r.register(
            "vllm:request_queue_time_seconds",
            waited,
            self.queuing_delay.clone(),
        );
        let read = "Time in which a prompt was read";
        let name = "vllm:request_prefill_time_seconds";
        r.register(name, read, self.prefill.clone());
        let wrote = "Time in which an answer was written";
        let name = "vllm:request_decode_time_seconds";
        r.register(name, wrote, self.decode.clone());
        let usage = "Share of the blocks that running requests hold";
        r.register("vllm:kv_cache_usage_perc", usage, self.kv_usage.clone());
        let label = |name: &'static str, value: String| (Cow::Borrowed(name), Cow::Owned(value));
        let cache = [
            label("block_size", settings.block_tokens.to_string()),
            label("num_gpu_blocks", settings.capacity_blocks.to_string()),
        ];
        let lora = [
            label("max_lora", "0".to_owned()),
            label("running_lora_adapters", String::new()),
            label("waiting_lora_adapters", String::new()),
        ];
        self.state("vllm:cache_config_info", "Size of the cache", cache);
        self.state("vllm:lora_requests_info", "No adapters are served", lora);
    }

    fn state<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [(Cow<'static, str>, Cow<'static, str>); N],
    ) {
        let always = Gauge::<i64>::default();
        always.set(1);
        let r = self.registry.sub_registry_with_labels(labels.into_iter());
        r.register(name, help, always);
    }

    fn register_weir(&mut self) {
        let r = self.registry.sub_registry_with_prefix("weir_host");
        let in_progress = "Requests running and queued";
        r.register("in_progress", in_progress, self.in_progress.clone());
        let delay = "Time from arrival to the begin of the prefill";
        r.register("queuing_delay_seconds", delay, self.queuing_delay.clone());
        let cached = "Blocks that can be found";
        r.register("cached_blocks", cached, self.cached_blocks.clone());
        r.register("cache_evictions", "Blocks evicted", self.evictions.clone());
        let prompts = "Tokens of the prompts answered";
        r.register("prompt_tokens", prompts, self.prompt_tokens.clone());
        let hits = "Tokens of these that were found cached";
        r.register("hit_tokens", hits, self.hit_tokens.clone());
        let class = (Cow::Borrowed("priority"), Cow::Owned(CLASS.to_string()));
        let r = r.sub_registry_with_label(class);
        r.register("queued", "Requests that wait", self.queued.clone());
    }

    /// An answer is complete.
    pub fn answered(&self, prompt_tokens: u64, spent: &Spent) {
        self.queuing_delay.observe(spent.wait.as_secs_f64());
        self.prefill.observe(spent.prefill.as_secs_f64());
        self.decode.observe(spent.decode.as_secs_f64());
        self.prompt_tokens.inc_by(prompt_tokens);
        self.hit_tokens.inc_by(spent.hit_tokens);
    }

    /// The page.
    ///
    /// # Errors
    /// The encoder failed.
    pub fn page(&self, load: &Load) -> Result<String, std::fmt::Error> {
        let whole = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.waiting.set(whole(load.waiting));
        self.running.set(whole(load.running));
        self.kv_usage.set(load.kv_usage);
        self.in_progress.set(whole(load.waiting + load.running));
        self.queued.set(whole(load.waiting));
        self.cached_blocks.set(whole(load.cached_blocks));
        let new = load.evictions.saturating_sub(self.evictions.get());
        self.evictions.inc_by(new);
        let mut page = String::new();
        encode(&mut page, &self.registry)?;
        Ok(page)
    }
}
