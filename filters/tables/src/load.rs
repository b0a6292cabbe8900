// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use weir_policy::Load;

use crate::v1;

/// Figures that were `age_ms` old when the message was built, `built` on the reader's clock.
pub fn decode_load(load: &v1::Load, built: Duration) -> Load {
    Load {
        observed: built.saturating_sub(Duration::from_millis(load.age_ms.into())),
        in_progress: load.in_progress,
        queued: load
            .queued
            .iter()
            .fold(0, |sum, queued| sum.saturating_add(*queued)),
        queuing_delay: load.queuing_delay_us.map(Duration::from_micros),
    }
}

/// The message for figures at `now`; classes are not told apart.
pub fn encode_load(load: &Load, now: Duration) -> v1::Load {
    let age = now.saturating_sub(load.observed);
    v1::Load {
        age_ms: u32::try_from(age.as_millis()).unwrap_or(u32::MAX),
        in_progress: load.in_progress,
        queued: vec![load.queued],
        queuing_delay_us: load
            .queuing_delay
            .map(|delay| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX)),
    }
}
