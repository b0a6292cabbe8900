// SPDX-License-Identifier: Apache-2.0
//! How long to wait before the next attempt.

use std::time::Duration;

/// Exponential back-off with full jitter (Marc Brooker, "Exponential Backoff And Jitter", AWS
/// Architecture Blog, 2015): uniform in `0..min(cap, base * 2^retry)`.
#[derive(Debug, Clone)]
pub struct Backoff {
    /// Upper end before the first retry.
    pub base: Duration,
    /// Upper end it grows to.
    pub cap: Duration,
}

impl Backoff {
    /// The wait before retry number `retry` (from 0), with `unit` drawn uniformly from 0..1. What
    /// the server asks for comes on top: were it only a minimum to the maximum of both, all that
    /// were shed together would come back together.
    #[must_use]
    pub fn delay(&self, retry: u32, retry_after: Option<Duration>, unit: f64) -> Duration {
        let factor = 2u32.saturating_pow(retry.min(31));
        let ceiling = self.base.saturating_mul(factor).min(self.cap);
        retry_after.unwrap_or_default() + ceiling.mul_f64(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BACKOFF: Backoff = Backoff {
        base: Duration::from_millis(100),
        cap: Duration::from_secs(10),
    };

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        let ceiling = |retry| BACKOFF.delay(retry, None, 1.0);
        assert_eq!(ceiling(0), Duration::from_millis(100));
        assert_eq!(ceiling(3), Duration::from_millis(800));
        assert_eq!(ceiling(20), Duration::from_secs(10));
        assert_eq!(ceiling(u32::MAX), Duration::from_secs(10));
    }

    proptest! {
        #[test]
        fn never_sooner_than_asked_and_never_more_than_the_cap_later(
            retry: u32, after in 0u64..100, unit in 0f64..1.0,
        ) {
            let after = Duration::from_secs(after);
            let delay = BACKOFF.delay(retry, Some(after), unit);
            prop_assert!(delay >= after && delay <= after + BACKOFF.cap);
        }
    }
}
