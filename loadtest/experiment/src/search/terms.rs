// SPDX-License-Identifier: Apache-2.0
//! Search terms, drawn as often as they were counted.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rand::{Rng, RngExt};

/// Terms by rank, with how often each occurred.
pub struct Terms {
    /// Occurrences of this rank and all before it.
    cumulative: Vec<u64>,
}

impl Terms {
    /// Reads lines `rank,count` under a line of names.
    ///
    /// # Errors
    /// The file cannot be read, or a line is something else.
    pub fn read(file: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        Self::parse(&text).with_context(|| file.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let mut sum = 0;
        let mut cumulative = Vec::new();
        for (number, line) in text.lines().enumerate().skip(1) {
            let count = line
                .split_once(',')
                .and_then(|(_, count)| count.parse::<u64>().ok())
                .with_context(|| format!("line {}: `{line}` is not rank,count", number + 1))?;
            sum += count;
            cumulative.push(sum);
        }
        ensure!(sum > 0, "there are no counts");
        Ok(Self { cumulative })
    }

    /// How many different ones there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cumulative.len()
    }

    /// Never: a table without counts is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cumulative.is_empty()
    }

    /// A term's rank; the index calls it `t<rank>`.
    pub fn draw(&self, rng: &mut impl Rng) -> usize {
        let all = self.cumulative.last().copied().unwrap_or(1);
        let at = rng.random_range(1..=all);
        self.cumulative.partition_point(|&sum| sum < at) + 1
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn terms_come_as_often_as_they_were_counted() {
        let terms = Terms::parse("rank,count\n1,70\n2,0\n3,30\n").unwrap();
        let mut rng = StdRng::seed_from_u64(1);
        let mut drawn = [0; 4];
        for _ in 0..10_000 {
            drawn[terms.draw(&mut rng)] += 1;
        }
        assert_eq!((drawn[0], drawn[2]), (0, 0));
        assert!((6_800..7_200).contains(&drawn[1]), "{drawn:?}");
    }

    #[test]
    fn other_lines_are_refused_by_number() {
        let refusal = |text: &str| Terms::parse(text).err().unwrap().to_string();
        assert!(refusal("rank,count\n1,2\n3;4\n").starts_with("line 3: `3;4`"));
        assert!(refusal("rank,count\n").contains("no counts"));
    }
}
