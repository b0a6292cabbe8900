// SPDX-License-Identifier: Apache-2.0
//! What is evidence of overload, and what is evidence that there is none.

/// Refused connections below this share of the requests sent say nothing. Closed keep-alive connections and resets
/// of single requests are everyday traffic: four a second among 200 requests (2 %) were seen on healthy hosts.
pub(super) const EARLY_SIGN: f64 = 0.05;

/// Windows in a row without a queue and with free cores after which everything is admitted. One such window may be a
/// moment between two bursts.
const IDLE_WINDOWS: u32 = 2;

/// Windows in a row with too long a queue after which it counts as one that does not drain. A burst drains in fewer.
const STANDING_WINDOWS: u32 = 3;

/// How long a queue has been too long.
///
/// A queue that comes and goes is how cores are kept busy; one that stays is overload (CoDel: Nichols and Jacobson,
/// *Controlling Queue Delay*, ACM Queue 2012).
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    windows: u32,
}

impl Standing {
    /// Takes in a window. Whether the queue has been too long for so long that it will not drain.
    pub fn is_overload(&mut self, too_long: bool) -> bool {
        self.windows = match too_long {
            true => self.windows.saturating_add(1),
            false => 0,
        };
        self.windows >= STANDING_WINDOWS
    }
}

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
