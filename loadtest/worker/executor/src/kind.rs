// SPDX-License-Identifier: Apache-2.0
//! The kinds of joblets, which are the actors of a scheduler.

/// What a joblet does, in the order in which the joblets of a job depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Fetches the items of a project.
    FeedSource,
    /// Applies the rules that channels share.
    SharedOperators,
    /// Applies the rules of one channel.
    Operators,
    /// Turns the items into the answer.
    OutputFeed,
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = 4;
    /// Every kind, in order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::FeedSource,
        Self::SharedOperators,
        Self::Operators,
        Self::OutputFeed,
    ];

    /// The name in metrics and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FeedSource => "feed_source",
            Self::SharedOperators => "shared_operators",
            Self::Operators => "operators",
            Self::OutputFeed => "output_feed",
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
