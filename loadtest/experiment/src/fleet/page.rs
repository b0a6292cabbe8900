// SPDX-License-Identifier: Apache-2.0
//! The metrics of a host, as the project's own hosts write them.

/// What a host says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) in_progress: u32,
    pub(crate) queued: u32,
    pub(crate) draining: bool,
    /// Jobs that have left the queue, each after 10 ms.
    pub(crate) waited: u32,
}

pub(crate) fn page(figures: Figures) -> String {
    let Figures {
        in_progress,
        queued,
        draining,
        waited,
    } = figures;
    let draining = u8::from(draining);
    let seconds = f64::from(waited) * 0.01;
    format!(
        "# TYPE weir_host_in_progress gauge\n\
         weir_host_in_progress {in_progress}\n\
         # TYPE weir_host_queued gauge\n\
         weir_host_queued{{priority=\"0\"}} {queued}\n\
         # TYPE weir_host_draining gauge\n\
         weir_host_draining {draining}\n\
         # TYPE weir_host_queuing_delay_seconds histogram\n\
         weir_host_queuing_delay_seconds_bucket{{le=\"+Inf\"}} {waited}\n\
         weir_host_queuing_delay_seconds_sum {seconds}\n\
         weir_host_queuing_delay_seconds_count {waited}\n"
    )
}
