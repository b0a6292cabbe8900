// SPDX-License-Identifier: Apache-2.0
//! Who asks, how often and for how many terms.

use rand::RngExt;
use rand::rngs::SmallRng;

use super::Params;

/// Clients and their queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// How many terms.
    pub terms: Terms,
    /// Each waits for its answer before it asks again.
    pub clients: u32,
    /// Seconds from one query of a client to its next, on average, exponential; at once where the answer comes later.
    /// 0: one after the other.
    pub cycle_s: f64,
    /// Classes of queries, each with a hot function of its own: most terms of every class but the last, ascending, at
    /// most [`CLASSES`] in all. Empty: one class.
    pub classes: &'static [u32],
}

/// Classes of queries that are told apart.
pub const CLASSES: usize = 4;

/// Numbers of search terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// 4 (section 4.3).
    Low,
    /// 1 to 16 by Zipf's law (section 4.3).
    Mixed,
    /// 12 to 18, each as often (section 3.1).
    High,
}

impl Load {
    /// Section 4.3: four clients, each one query a second on average; so many times that.
    #[must_use]
    pub fn base(terms: Terms, times: u32) -> Self {
        Self {
            terms,
            clients: 4 * times,
            cycle_s: 1.0,
            classes: &[],
        }
    }

    /// One query at a time (section 3.1).
    #[must_use]
    pub fn alone(terms: Terms) -> Self {
        Self {
            terms,
            clients: 1,
            cycle_s: 0.0,
            classes: &[],
        }
    }

    /// With classes.
    #[must_use]
    pub fn classes(self, classes: &'static [u32]) -> Self {
        Self { classes, ..self }
    }

    pub(super) fn class(&self, terms: u32) -> usize {
        let shorter = self.classes.iter().filter(|most| **most < terms).count();
        shorter.min(CLASSES - 1)
    }
}

impl Terms {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Mixed => "mixed",
            Self::High => "high",
        }
    }

    pub(super) fn draw(self, params: &Params, rng: &mut SmallRng) -> u32 {
        match self {
            Self::Low => 4,
            Self::High => rng.random_range(12..=18),
            Self::Mixed => {
                let weight = |terms: u32| f64::from(terms).powf(-params.zipf);
                let all: f64 = (1..=16).map(weight).sum();
                let mut left = rng.random::<f64>() * all;
                let drawn = (1..16).find(|terms| {
                    left -= weight(*terms);
                    left < 0.0
                });
                drawn.unwrap_or(16)
            }
        }
    }
}
