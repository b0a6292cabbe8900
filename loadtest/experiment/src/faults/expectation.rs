// SPDX-License-Identifier: Apache-2.0
//! Expectations of a fault, and how long it is played.

use std::time::Duration;

/// A known reason to fall short.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// Why.
    pub why: &'static str,
    /// Per cent of the important requests that are answered all the same, at least, and of the others.
    pub least: f64,
    /// How many are not answered depends on how long a part takes, so on the machine.
    pub by_time: bool,
    /// Figures may be over their bounds for it, too.
    pub excuses_figures: bool,
}

impl Gap {
    /// As it is held in this length.
    #[must_use]
    pub fn at(self, length: Length) -> Self {
        match self.by_time && !length.holds_times {
            true => Self { least: 0.0, ..self },
            false => self,
        }
    }
}

/// The outcome that is expected while a fault lasts, and before and after it.
#[derive(Debug, Clone, Copy)]
pub struct Expectation {
    /// In one sentence.
    pub sentence: &'static str,
    /// Per cent of the important requests that are answered, at least. Those that were at a process when it was
    /// killed are set apart and counted: nobody else may run them again.
    pub important: f64,
    /// The same of the others.
    pub low: f64,
}

impl Expectation {
    /// The target where no request meets the harm.
    #[must_use]
    pub const fn nothing_fails(sentence: &'static str) -> Self {
        Self {
            sentence,
            important: 100.0,
            low: 100.0,
        }
    }

    /// The target wherever capacity remains: 99.9 % of the important requests, and of the others, as nothing has
    /// to be shed.
    #[must_use]
    pub const fn capacity_remains(sentence: &'static str) -> Self {
        Self {
            sentence,
            important: 99.9,
            low: 99.0,
        }
    }
}

/// How long a fault is played, and under how many requests.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    /// Before the harm.
    pub before: Duration,
    /// The harm.
    pub harm: Duration,
    /// After it.
    pub after: Duration,
    /// Requests a second, over all callers.
    pub rate: u32,
    /// Whether bounds on times are held.
    pub holds_times: bool,
}

impl Length {
    /// Seconds before the harm, of it, and after it, in the full form.
    #[must_use]
    pub const fn full(before: u64, harm: u64, after: u64) -> Self {
        Self {
            before: Duration::from_secs(before),
            harm: Duration::from_secs(harm),
            after: Duration::from_secs(after),
            rate: 200,
            holds_times: true,
        }
    }

    /// The same in the short form, which runs in builds for development beside other tests: times are told and not
    /// held.
    #[must_use]
    pub const fn short(before: u64, harm: u64, after: u64) -> Self {
        Self {
            rate: 60,
            holds_times: false,
            ..Self::full(before, harm, after)
        }
    }
}
