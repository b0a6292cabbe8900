// SPDX-License-Identifier: Apache-2.0
//! At which use of its cores the service needs one more, and at which it can spare one.

/// A core more above this use of each. Document 004's limit for one core.
const UP: f64 = 0.6;
/// The highest that `UP` may become: beyond it a busy tick cannot be told from a full one.
const UP_MOST: f64 = 0.9;
/// The least that it may become, so that one bad tail does not take a core for ever.
const UP_LEAST: f64 = 0.2;
/// A core less below this use of each. Document 004 has 0.65 of two.
const DOWN: f64 = 0.55;
/// A limit moves by so much at a time.
const STEP: f64 = 0.02;

/// Two limits for each number of elastic cores that the service can have.
#[derive(Clone, Debug)]
pub(super) struct Learned {
    least: usize,
    up: Vec<f64>,
    down: Vec<f64>,
}

impl Learned {
    pub(super) fn new(least: usize, elastic: usize) -> Self {
        let of = |each: f64| {
            (0..=elastic)
                .map(|given| each * (least + given) as f64)
                .collect()
        };
        Self {
            least,
            up: of(UP),
            down: of(DOWN),
        }
    }

    /// With so many elastic cores, more are needed above this use.
    pub(super) fn up(&self, given: usize) -> f64 {
        self.up[given]
    }

    /// With so many, there is no use left to see beyond this.
    pub(super) fn full(&self, given: usize) -> f64 {
        UP_MOST * (self.least + given) as f64
    }

    /// With so many, one can be spared below this use.
    pub(super) fn down(&self, given: usize) -> f64 {
        self.down[given]
    }

    /// There was not enough slack at this use.
    pub(super) fn was_tight(&mut self, given: usize, cpu: f64) {
        let least = UP_LEAST * (self.least + given) as f64;
        self.up[given] = self.up[given].min(cpu * (1.0 - STEP)).max(least);
    }

    /// There was this share of slack at this use: half of that much more use will do, too.
    pub(super) fn was_enough(&mut self, given: usize, cpu: f64, slack: f64) {
        let more = (slack / 2.0).max(STEP);
        self.up[given] = self.up[given].max((cpu * (1.0 + more)).min(self.full(given)));
    }

    /// At this use with so many cores, one less was or was not enough.
    pub(super) fn tried_less(&mut self, given: usize, cpu: f64, enough: bool) {
        let down = &mut self.down[given];
        *down = if enough {
            down.max(cpu * (1.0 + STEP))
        } else {
            down.min(cpu * (1.0 - STEP))
        };
    }
}
