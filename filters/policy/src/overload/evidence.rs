// SPDX-License-Identifier: Apache-2.0
//! What is evidence of overload, and what is evidence that there is none.

/// Refused connections below this share of the requests sent say nothing. Closed keep-alive connections and resets
/// of single requests are everyday traffic: four a second among 200 requests (2 %) were seen on healthy hosts.
pub(super) const EARLY_SIGN: f64 = 0.05;

/// Windows in a row without a queue and with free cores after which everything is admitted. One such window may be a
/// moment between two bursts.
const IDLE_WINDOWS: u32 = 2;

/// How long there was nothing to do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idleness {
    windows: u32,
}

impl Idleness {
    /// Takes in a window. Whether there has been nothing to do for so long that nobody is to be refused.
    pub(super) fn opens(&mut self, idle: bool) -> bool {
        self.windows = match idle {
            true => self.windows.saturating_add(1),
            false => 0,
        };
        self.is_long()
    }

    pub(super) fn is_long(self) -> bool {
        self.windows >= IDLE_WINDOWS
    }
}
