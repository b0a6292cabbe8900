// SPDX-License-Identifier: Apache-2.0
//! Whose names the metrics of hosts have.

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

    pub(super) fn queuing_delay(self) -> &'static str {
        match self {
            Self::Weir => "weir_host_queuing_delay_seconds",
            Self::Vllm => "vllm:request_queue_time_seconds",
            Self::Sglang => "sglang:queue_time_seconds",
        }
    }
}
