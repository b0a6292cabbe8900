// SPDX-License-Identifier: Apache-2.0
//! Any host (document 001, section 9.2.2).

use rand::Rng;

use super::{Candidates, baseline};
use crate::Ranked;

pub(super) fn select(candidates: &Candidates<'_>, rng: &mut impl Rng) -> Ranked {
    baseline::shuffle_front(candidates, || rng.next_u64())
}
