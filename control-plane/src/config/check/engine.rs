// SPDX-License-Identifier: Apache-2.0
//! Whose names the metrics of hosts have.

use weir_policy::Serves;

use crate::config::Scrape;

/// Whoever serves requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// By Weir's own contract.
    Weir,
    /// vLLM (docs/design/metrics.md there).
    Vllm,
    /// SGLang, started with `--enable-metrics` (its references, *Production metrics*).
    Sglang,
    /// trtllm-serve of TensorRT-LLM, with `return_perf_metrics` and `enable_iter_perf_stats` (`tensorrt_llm/metrics/collector.py`
    /// there at commit 050f80de, `tensorrt_llm/serve/openai_server.py` at 00057725). Older ones write other names or none.
    Trtllm,
    /// Triton with the TensorRT-LLM backend `inflight_batcher_llm`, of TensorRT-LLM
    /// (`triton_backend/inflight_batcher_llm/src/custom_metrics_reporter/custom_metrics_reporter.cc` there at commit 0d5352f5,
    /// `model_instance_state.cc` beside it at 0c8de69a).
    Triton,
}

impl Engine {
    pub(super) const ALL: [(&'static str, Self); 5] = [
        ("weir", Self::Weir),
        ("vllm", Self::Vllm),
        ("sglang", Self::Sglang),
        ("trtllm", Self::Trtllm),
        ("triton", Self::Triton),
    ];

    /// Of the page. At `/metrics` trtllm-serve has JSON.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Trtllm => "/prometheus/metrics",
            _ => "/metrics",
        }
    }

    /// Of jobs running or queued. Other engines tell the two apart.
    pub(super) fn in_progress(self) -> &'static str {
        match self {
            Self::Triton => "nv_trt_llm_request_metrics{request_type=\"active\"}",
            _ => "weir_host_in_progress",
        }
    }

    /// Of jobs that run, where queued ones are not among them.
    pub(super) fn running(self) -> Option<&'static str> {
        match self {
            Self::Weir | Self::Triton => None,
            Self::Vllm => Some("vllm:num_requests_running"),
            Self::Sglang => Some("sglang:num_running_reqs"),
            Self::Trtllm => Some("trtllm_num_requests_running"),
        }
    }

    pub(super) fn queued(self) -> &'static str {
        match self {
            Self::Weir => "weir_host_queued",
            Self::Vllm => "vllm:num_requests_waiting",
            Self::Sglang => "sglang:num_queue_reqs",
            Self::Trtllm => "trtllm_num_requests_waiting",
            Self::Triton => "nv_trt_llm_request_metrics{request_type=\"waiting\"}",
        }
    }

    /// Whether queued jobs may be told as fewer than none. Triton's are the active ones less those that its last step
    /// ran, some of which that step has finished: an idle engine can say -1.
    pub(super) fn floors_queued(self) -> bool {
        self == Self::Triton
    }

    /// Of the time in which prompts are read; SGLang and Triton have none.
    pub(super) fn reading(self) -> &'static str {
        match self {
            Self::Weir | Self::Sglang | Self::Triton => Scrape::READING,
            Self::Vllm => "vllm:request_prefill_time_seconds",
            Self::Trtllm => "trtllm_request_prefill_time_seconds",
        }
    }

    /// Of the time in which answers are written, from the first token to the last; SGLang and Triton have none.
    pub(super) fn writing(self) -> &'static str {
        match self {
            Self::Weir | Self::Sglang | Self::Triton => Scrape::WRITING,
            Self::Vllm => "vllm:request_decode_time_seconds",
            Self::Trtllm => "trtllm_request_decode_time_seconds",
        }
    }

    /// What its hosts do.
    pub(super) fn serves(self) -> Serves {
        match self {
            Self::Weir => Serves::Jobs,
            Self::Vllm | Self::Sglang | Self::Trtllm | Self::Triton => Serves::Prompts,
        }
    }

    /// Whether a wait is told when its answer is done, however long after: vLLM observes all times of a request then
    /// (`vllm/v1/metrics/loggers.py`, `finished_requests`), and TensorRT-LLM's collector is given finished ones.
    pub(super) fn tells_delay_late(self) -> bool {
        matches!(self, Self::Vllm | Self::Trtllm)
    }

    /// Triton has none: `nv_inference_queue_duration_us` ends where a request comes to the backend, which queues it itself.
    pub(super) fn queuing_delay(self) -> Option<&'static str> {
        match self {
            Self::Weir => Some("weir_host_queuing_delay_seconds"),
            Self::Vllm => Some("vllm:request_queue_time_seconds"),
            Self::Sglang => Some("sglang:queue_time_seconds"),
            Self::Trtllm => Some("trtllm_request_queue_time_seconds"),
            Self::Triton => None,
        }
    }
}
