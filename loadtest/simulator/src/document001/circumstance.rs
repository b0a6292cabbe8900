// SPDX-License-Identifier: Apache-2.0
//! What the experiments could have been played under instead: things that document 001 says would matter, or not.
//! Production is as it was.

use std::time::Duration;

use super::params::HOSTS;
use crate::Scenario;
use crate::scenario::{HostFault, Trouble};
use crate::workload::Key;

/// Servers are away for so long: the middle of five to ten minutes (section 9.2).
const AWAY: Duration = Duration::from_secs(450);
/// Between two starts of servers (section 10.1).
const SPACING: Duration = Duration::from_secs(600);

/// One of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Circumstance {
    /// As the text has the experiments.
    #[default]
    AsPublished,
    /// What ends in the first hour is not counted, as in production: caches are not empty then (section 7.4.5).
    WarmCaches,
    /// The baseline's servers come in another order for each key (section 7.4.6: of another random generator).
    OtherShuffle,
    /// As production, servers have to take connections within a time (sections 7.4.3 and 12.2).
    ConnectTimeout,
    /// All servers are taken at once, in the middle (section 10.1: all were started together).
    TakenTogether,
    /// Every server is taken once, ten minutes after the one before (section 10.1's remedy).
    TakenInTurn,
}

impl Circumstance {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::AsPublished,
        Self::WarmCaches,
        Self::OtherShuffle,
        Self::ConnectTimeout,
        Self::TakenTogether,
        Self::TakenInTurn,
    ];

    /// As the command line has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AsPublished => "as-published",
            Self::WarmCaches => "warm-caches",
            Self::OtherShuffle => "other-shuffle",
            Self::ConnectTimeout => "connect-timeout",
            Self::TakenTogether => "taken-together",
            Self::TakenInTurn => "taken-in-turn",
        }
    }

    /// An experiment of so long, under it.
    pub(super) fn change(self, scenario: &mut Scenario, lasts: Duration, connect: Duration) {
        match self {
            Self::AsPublished | Self::WarmCaches | Self::OtherShuffle => {}
            Self::ConnectTimeout => scenario.timeouts.connect = Some(connect),
            Self::TakenTogether => scenario.troubles = taken(lasts / 2, Duration::ZERO),
            Self::TakenInTurn => {
                // All of them within the run, also within a short one.
                let first = lasts / 6;
                let spacing = SPACING.min((lasts - first) / (HOSTS as u32 + 1));
                scenario.troubles = taken(first, spacing);
            }
        }
    }

    /// The keys of all projects.
    pub(super) fn keys(self, keys: Vec<Key>) -> Vec<Key> {
        match self {
            Self::OtherShuffle => {
                let other = |number| Key::new(&format!("another-project-{number}"));
                (0..keys.len()).map(other).collect()
            }
            _ => keys,
        }
    }
}

impl std::str::FromStr for Circumstance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text:?}: no such circumstance; there are {names}")
        })
    }
}

impl std::fmt::Display for Circumstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

fn taken(first: Duration, spacing: Duration) -> Vec<Trouble> {
    let of = |host: usize| {
        let at = first + spacing * host as u32;
        let what = |at, what| Trouble { at, host, what };
        [what(at, HostFault::Lost), what(at + AWAY, HostFault::Back)]
    };
    let mut all: Vec<Trouble> = (0..HOSTS).flat_map(of).collect();
    all.sort_by_key(|trouble| trouble.at);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_circumstance_is_known_by_its_name() {
        for one in Circumstance::ALL {
            assert_eq!(one.name().parse(), Ok(one));
        }
        assert!(
            "x".parse::<Circumstance>()
                .unwrap_err()
                .contains("taken-in-turn")
        );
    }

    #[test]
    fn every_server_is_taken_once_and_comes_back() {
        let hour = Duration::from_secs(3600);
        let all = taken(hour, SPACING);
        assert_eq!(all.len(), 2 * HOSTS);
        for host in 0..HOSTS {
            let own: Vec<&Trouble> = all.iter().filter(|trouble| trouble.host == host).collect();
            assert_eq!(own[0].what, HostFault::Lost);
            assert_eq!(own[1].what, HostFault::Back);
            assert_eq!(own[1].at - own[0].at, AWAY);
            assert_eq!(own[0].at, hour + SPACING * host as u32);
        }
    }
}
