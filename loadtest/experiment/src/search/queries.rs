// SPDX-License-Identifier: Apache-2.0
//! Seeded queries: how many terms, and which.

use std::fmt;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use serde_json::json;

use crate::search::terms::Terms;

/// Terms of the longest query, as document 002 has it (section 4, "from 1 to 18 keywords").
const LONGEST: usize = 18;

/// Which queries are asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// 4 terms (document 002, section 3.1 and 4.3).
    Light,
    /// 1 to 18 terms, fewer more often: their number follows a Zipf distribution, as in the load
    /// generator of document 002. Its exponent is not told; 1 is taken.
    Mixed,
    /// 12 to 18 terms (document 002, section 3.1), all numbers alike.
    Heavy,
}

impl Load {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Light, Self::Mixed, Self::Heavy];

    fn terms(self, rng: &mut StdRng) -> usize {
        match self {
            Self::Light => 4,
            Self::Mixed => zipf(rng),
            Self::Heavy => rng.random_range(12..=LONGEST),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Light => "light",
            Self::Mixed => "mixed",
            Self::Heavy => "heavy",
        })
    }
}

/// 1 to `LONGEST`, n with a probability in proportion to 1/n.
fn zipf(rng: &mut StdRng) -> usize {
    let weight = |n: usize| 1.0 / n as f64;
    let all: f64 = (1..=LONGEST).map(weight).sum();
    let mut left = rng.random_range(0.0..all);
    (1..LONGEST)
        .find(|&n| {
            left -= weight(n);
            left < 0.0
        })
        .unwrap_or(LONGEST)
}

/// Bodies for `_search`: documents with any of the terms, the best ten by their score. The same
/// seed gives the same queries.
#[must_use]
pub fn bodies(terms: &Terms, load: Load, count: usize, seed: u64) -> Vec<String> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..count)
        .map(|_| {
            let wanted = load.terms(&mut rng).min(terms.len());
            let mut ranks = Vec::new();
            while ranks.len() < wanted {
                let rank = terms.draw(&mut rng);
                if !ranks.contains(&rank) {
                    ranks.push(rank);
                }
            }
            let words: Vec<String> = ranks.iter().map(|rank| format!("t{rank}")).collect();
            json!({ "query": { "match": { "text": words.join(" ") } } }).to_string()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_queries_are_the_most_and_all_lengths_occur() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut seen = [0_u32; LONGEST + 1];
        for _ in 0..35_000 {
            seen[Load::Mixed.terms(&mut rng)] += 1;
        }
        // 1/n over H(18) = 3.495: 10,000 of one term, 556 of 18.
        assert_eq!(seen[0], 0);
        assert!((9_600..10_400).contains(&seen[1]), "{seen:?}");
        assert!((450..660).contains(&seen[LONGEST]), "{seen:?}");
    }

    #[test]
    fn loads_have_the_lengths_they_are_named_for() {
        let counts: String = (1..=100).map(|rank| format!("{rank},1\n")).collect();
        let file = std::env::temp_dir().join(format!("weir-search-{}.csv", std::process::id()));
        std::fs::write(&file, format!("rank,count\n{counts}")).unwrap();
        let terms = Terms::read(&file).unwrap();
        std::fs::remove_file(file).unwrap();
        let lengths = |load| -> Vec<usize> {
            let length =
                |body: &String| body.matches("t").count() - "matchtextqueryt".matches('t').count();
            bodies(&terms, load, 200, 1).iter().map(length).collect()
        };
        let light = lengths(Load::Light);
        assert!(light.iter().all(|&length| length == light[0]));
        let heavy = lengths(Load::Heavy);
        let (least, most) = (heavy.iter().min().unwrap(), heavy.iter().max().unwrap());
        assert_eq!(most - least, 6);
        assert_eq!(
            bodies(&terms, Load::Heavy, 9, 1),
            bodies(&terms, Load::Heavy, 9, 1)
        );
        assert_ne!(
            bodies(&terms, Load::Heavy, 9, 1),
            bodies(&terms, Load::Heavy, 9, 2)
        );
    }
}
