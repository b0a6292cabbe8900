// SPDX-License-Identifier: Apache-2.0
use xxhash_rust::xxh64::xxh64;

use crate::Salt;

/// Hash of the name of something a host may have in its cache: XXH64 with seed 0 of the name's bytes, or
/// what the cluster's [`Salt`] makes of them.
///
/// Two keys with one hash are one key to Weir. With a million keys the chance that any two collide is
/// 3 × 10⁻⁸, and the harm is a request sent to a host without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub u64);

impl KeyHash {
    /// The hash of a key's name.
    pub fn of(name: &[u8]) -> Self {
        Self(xxh64(name, 0))
    }

    /// The hash of a key's name in a cluster with this salt, or without one.
    pub fn under(salt: Option<&Salt>, name: &[u8]) -> Self {
        salt.map_or_else(|| Self::of(name), |salt| salt.hash(name))
    }
}

/// Identity of a host: XXH64 with seed 0 of its address, written as `ip:port` or `[ip6]:port`.
///
/// It does not depend on who assigned it or when, so tables of different ages and servers can be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u64);

impl HostId {
    /// The identity of the host at `address`.
    pub fn of(address: &(impl AsRef<[u8]> + ?Sized)) -> Self {
        Self(xxh64(address.as_ref(), 0))
    }
}

/// The user priority U in `0..128` (DAGOR, Zhou et al., SoCC 2018, section 4.2.2): a hash of the user and
/// the hour since the Unix epoch, so that every user's turn to be shed first comes and goes.
pub fn user_priority(user: &[u8], hour: u64) -> u8 {
    let user = xxh64(user, 0);
    (xxh64(&hour.to_le_bytes(), user) >> 57) as u8
}

/// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the generator behind a key's own
/// sequence of choices.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Maps a uniform 32-bit number to `0..n` (Lemire, ACM TOMACS 2019, without the rejection step: the bias is
/// below n / 2³², a hundred-thousandth for the largest table). Half a word is enough, and WebAssembly has no
/// 128-bit product.
pub(crate) fn scale(random: u32, n: usize) -> usize {
    ((u64::from(random) * n as u64) >> 32) as usize
}

/// The half of a uniform number that mixes best, for [`scale`].
pub(crate) fn upper(random: u64) -> u32 {
    (random >> 32) as u32
}
