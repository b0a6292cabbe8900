// SPDX-License-Identifier: Apache-2.0
//! How long the parts of a request take.

use std::time::Duration;

/// Rates of one host, already divided by whatever the model is sped up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    prefill_token: Duration,
    decode_token: Duration,
}

impl Timing {
    /// `speed_up` divides every duration. Rates must be above 0.
    #[must_use]
    pub fn new(prefill_tokens_per_second: f64, decode_ms_per_token: f64, speed_up: f64) -> Self {
        let seconds = |s: f64| Duration::try_from_secs_f64(s / speed_up).unwrap_or(Duration::MAX);
        Self {
            prefill_token: seconds(1.0 / prefill_tokens_per_second),
            decode_token: seconds(decode_ms_per_token / 1e3),
        }
    }

    /// Time until the first token of the answer: the tokens that were not found, and at least one.
    #[must_use]
    pub fn prefill(&self, tokens: u64) -> Duration {
        times(self.prefill_token, tokens.max(1))
    }

    /// Time of the answer's tokens after that.
    #[must_use]
    pub fn decode(&self, tokens: u64) -> Duration {
        times(self.decode_token, tokens)
    }
}

fn times(each: Duration, n: u64) -> Duration {
    each.saturating_mul(u32::try_from(n).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_divided_by_the_speed_up() {
        let timing = Timing::new(1000.0, 20.0, 10.0);
        assert_eq!(timing.prefill(5000), Duration::from_millis(500));
        assert_eq!(timing.prefill(0), timing.prefill(1));
        assert_eq!(timing.decode(10), Duration::from_millis(20));
        assert_eq!(timing.decode(0), Duration::ZERO);
    }
}
