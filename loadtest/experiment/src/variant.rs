// SPDX-License-Identifier: Apache-2.0
//! The variants that an experiment puts side by side: its ways.

use clap::builder::EnumValueParser;
use clap::{Args, ValueEnum};
use weir_replay::rng::SplitMix64;

use crate::Seeded;

/// A variant: an enum of the command line, in the order of the tables.
pub trait Variant: ValueEnum + PartialEq + 'static {
    /// As the command line, tables and file names say it.
    #[must_use]
    fn name(&self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl<W: ValueEnum + PartialEq + 'static> Variant for W {}

/// Flags of an experiment that puts ways of the command line side by side.
#[derive(Args)]
pub struct Compared<P: Args, W: Variant + Clone + Send + Sync> {
    /// The length and the seed.
    #[command(flatten)]
    pub seeded: Seeded,
    /// Only these ways
    #[arg(long = "way", value_name = "WAY", value_parser = EnumValueParser::<W>::new())]
    ways: Vec<W>,
    /// The programs that are run.
    #[command(flatten)]
    pub programs: P,
}

impl<P: Args, W: Variant + Clone + Send + Sync> Compared<P, W> {
    /// The ways of a round, in an order that is drawn.
    #[must_use]
    pub fn drawn(&self, random: &mut SplitMix64) -> Vec<W> {
        drawn(&self.ways, random)
    }
}

/// The wanted ways, or all if none is named, in an order that is drawn: no way always comes first.
fn drawn<W: Variant>(wanted: &[W], random: &mut SplitMix64) -> Vec<W> {
    let mut ways = W::value_variants().to_vec();
    ways.retain(|way| wanted.is_empty() || wanted.contains(way));
    // Fisher and Yates.
    for last in (1..ways.len()).rev() {
        ways.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
    ways
}

/// What is measured in a round, in its order: every other round backwards, so that nobody is always the first.
pub(crate) fn in_turn<T>(round: usize, all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.into_iter().collect();
    if round % 2 == 1 {
        all.reverse();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_round_goes_back() {
        let ways = ["plain", "no-op", "weir"];
        assert_eq!(in_turn(0, ways), ways);
        assert_eq!(in_turn(1, ways), ["weir", "no-op", "plain"]);
    }

    #[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
    enum Choice {
        One,
        AndTwo,
        Three,
    }

    #[test]
    fn an_order_is_drawn_of_the_wanted_ways_and_is_the_same_for_a_seed() {
        let drawn = |wanted: &[Choice], seed| drawn(wanted, &mut SplitMix64::new(seed));
        assert_eq!(drawn(&[], 5), drawn(&[], 5));
        let first: Vec<Choice> = (0..20).map(|seed| drawn(&[], seed)[0]).collect();
        assert!(
            Choice::value_variants()
                .iter()
                .all(|way| first.contains(way))
        );
        assert_eq!(drawn(&[Choice::AndTwo], 1), [Choice::AndTwo]);
        assert_eq!(Choice::AndTwo.name(), "and-two");
    }
}
