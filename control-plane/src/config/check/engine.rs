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
}

impl Engine {
    pub(super) const ALL: [(&'static str, Self); 3] = [
        ("weir", Self::Weir),
        ("vllm", Self::Vllm),
        ("sglang", Self::Sglang),
    ];
    /// Of jobs running or queued. Engines tell the two apart.
    pub(super) const IN_PROGRESS: &'static str = "weir_host_in_progress";

    /// Of jobs that run, where queued ones are not among them.
    pub(super) fn running(self) -> Option<&'static str> {
        match self {
            Self::Weir => None,
            Self::Vllm => Some("vllm:num_requests_running"),
            Self::Sglang => Some("sglang:num_running_reqs"),
        }
    }

    pub(super) fn queued(self) -> &'static str {
        match self {
            Self::Weir => "weir_host_queued",
            Self::Vllm => "vllm:num_requests_waiting",
            Self::Sglang => "sglang:num_queue_reqs",
        }
    }

    /// Of the time in which prompts are read; SGLang has none.
    pub(super) fn reading(self) -> &'static str {
        match self {
            Self::Weir | Self::Sglang => Scrape::READING,
            Self::Vllm => "vllm:request_prefill_time_seconds",
        }
    }

    /// What its hosts do.
    pub(super) fn serves(self) -> Serves {
        match self {
            Self::Weir => Serves::Jobs,
            Self::Vllm | Self::Sglang => Serves::Prompts,
        }
    }

    pub(super) fn queuing_delay(self) -> &'static str {
        match self {
            Self::Weir => "weir_host_queuing_delay_seconds",
            Self::Vllm => "vllm:request_queue_time_seconds",
            Self::Sglang => "sglang:queue_time_seconds",
        }
    }
}
