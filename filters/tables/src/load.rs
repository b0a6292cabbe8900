// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use weir_policy::{CLASSES, Load, Work};

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
        busy_cores: load.busy_cores,
        work: load.tells_work.then(|| {
            let micros = load.work_us.iter().copied();
            Work::by_class(micros.map(Duration::from_micros))
        }),
    }
}

/// Work by class as messages have it: class 0 first.
pub fn encode_work(work: &Work) -> Vec<u64> {
    let mut micros = Vec::new();
    for (class, time) in work.iter().take(CLASSES.into()) {
        micros.resize(usize::from(class), 0);
        micros.push(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }
    micros
}

/// The message for figures at `now`; of queued jobs classes are not told apart.
pub fn encode_load(load: &Load, now: Duration) -> v1::Load {
    let age = now.saturating_sub(load.observed);
    v1::Load {
        age_ms: u32::try_from(age.as_millis()).unwrap_or(u32::MAX),
        in_progress: load.in_progress,
        queued: vec![load.queued],
        queuing_delay_us: load
            .queuing_delay
            .map(|delay| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX)),
        busy_cores: load.busy_cores,
        tells_work: load.work.is_some(),
        work_us: load.work.as_ref().map(encode_work).unwrap_or_default(),
    }
}
