// SPDX-License-Identifier: Apache-2.0
//! What others can make happen is logged no more often than once a second, however often it happens.

use std::time::Duration;

use tokio::time::Instant;

const LOG_EVERY: Duration = Duration::from_secs(1);

/// When something was said last, and how often it was not since.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    said: Option<Instant>,
    unsaid: u64,
}

impl Seldom {
    /// How many were not said before this one, if this one is to be said.
    pub(crate) fn is_due(&mut self) -> Option<u64> {
        if self.said.is_some_and(|said| said.elapsed() < LOG_EVERY) {
            self.unsaid += 1;
            return None;
        }
        self.said = Some(Instant::now());
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_recurs_is_said_once_a_second_and_what_is_between_is_counted() {
        let mut seldom = Seldom::default();
        assert_eq!(seldom.is_due(), Some(0));
        assert_eq!(seldom.is_due(), None);
        assert_eq!(seldom.is_due(), None);
        tokio::time::advance(LOG_EVERY).await;
        assert_eq!(seldom.is_due(), Some(2));
    }
}
