// SPDX-License-Identifier: Apache-2.0
/// Number of business classes: B is in `0..CLASSES`.
pub const CLASSES: u16 = 32;
/// Number of user priorities: U is in `0..USERS` (DAGOR, section 4.2.2).
pub const USERS: u16 = 128;
/// Number of ranks.
pub const RANKS: u16 = CLASSES * USERS;

/// How important a request is: business class B, then user priority U. Smaller is more important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(u16);

impl Rank {
    /// The rank of (B,U); either is clamped to its range.
    pub fn new(class: u8, user: u8) -> Self {
        Self(u16::from(class).min(CLASSES - 1) * USERS + u16::from(user).min(USERS - 1))
    }

    /// The rank numbered `rank`, or none if there is no such rank.
    pub fn from_number(rank: u32) -> Option<Self> {
        u16::try_from(rank)
            .ok()
            .filter(|rank| *rank < RANKS)
            .map(Self)
    }

    /// B × 128 + U.
    pub fn number(self) -> u16 {
        self.0
    }

    /// The business class B.
    pub fn class(self) -> u8 {
        (self.0 / USERS) as u8
    }
}

/// Which requests are admitted: those whose rank is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u16);

impl Level {
    /// Every request is admitted.
    pub const ALL: Self = Self(RANKS);
    /// No request is admitted.
    pub const NONE: Self = Self(0);

    /// The level that admits the `ranks` most important ranks; more than there are means all.
    pub fn admitting(ranks: u16) -> Self {
        Self(ranks.min(RANKS))
    }

    /// The lowest level that admits `rank`.
    pub fn just_admitting(rank: Rank) -> Self {
        Self(rank.0 + 1)
    }

    /// The highest level that refuses `rank`.
    pub fn just_refusing(rank: Rank) -> Self {
        Self(rank.0)
    }

    /// How many ranks are admitted.
    pub fn ranks(self) -> u16 {
        self.0
    }

    /// Whether a request of this rank gets in.
    pub fn admits(self, rank: Rank) -> bool {
        rank.0 < self.0
    }
}
