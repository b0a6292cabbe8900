// SPDX-License-Identifier: Apache-2.0
//! What events and governor cost the machine.

use super::Params;

/// Costs that come with a governor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agent {
    /// A search thread waits so long when it enters or leaves the hot function: the mean of an exponential.
    pub event_ns: f64,
    /// A tick works so long on some core.
    pub tick_ns: f64,
}

impl Agent {
    /// Governors of the kernel: no events, and ticks that are not worth counting.
    pub const NONE: Self = Self {
        event_ns: 0.0,
        tick_ns: 0.0,
    };

    /// Document 002's JVMTI agent with its scheduler thread.
    #[must_use]
    pub fn document(params: &Params) -> Self {
        Self {
            event_ns: params.agent_event_ms * 1e6,
            tick_ns: params.agent_tick_ms * 1e6,
        }
    }

    /// weir-events and weir-governor.
    #[must_use]
    pub fn ours(params: &Params) -> Self {
        Self {
            event_ns: params.event_ns,
            tick_ns: params.tick_us * 1e3,
        }
    }
}
