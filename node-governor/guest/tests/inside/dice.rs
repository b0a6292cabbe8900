// SPDX-License-Identifier: Apache-2.0
//! Chance that is the same in every run.

use std::env;

use anyhow::Result;

/// Numbers that look like dice and are the same in every run: SplitMix64's finaliser.
pub(crate) fn scatter(round: u64) -> u64 {
    let mut mixed = round.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// How many rounds are played: so many at night and a third of them else, or `WEIR_GUEST_ROUNDS`.
pub(crate) fn rounds(at_night: u64) -> Result<u64> {
    match env::var("WEIR_GUEST_ROUNDS") {
        Ok(rounds) => Ok(rounds.parse()?),
        Err(_) if weir_needs::is_nightly() => Ok(at_night),
        Err(_) => Ok(at_night / 3),
    }
}
