// SPDX-License-Identifier: Apache-2.0
//! A set of cores.

use std::fmt;

/// Core numbers as the kernel counts, ascending. Shown as cpusets are written: `0-1,3`.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Cores(Vec<u32>);

impl Cores {
    /// None.
    pub const NONE: Self = Self(Vec::new());

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their numbers, ascending.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }

    /// Whether it is one of them.
    pub fn has(&self, number: u32) -> bool {
        self.0.binary_search(&number).is_ok()
    }

    /// These and those.
    pub fn with(&self, others: &Self) -> Self {
        self.0.iter().chain(&others.0).copied().collect()
    }

    /// These but not those.
    pub fn without(&self, others: &Self) -> Self {
        let kept = self.0.iter().filter(|number| !others.has(**number));
        Self(kept.copied().collect())
    }

    /// Those that are in both.
    pub fn shared(&self, others: &Self) -> Self {
        let both = self.0.iter().filter(|number| others.has(**number));
        Self(both.copied().collect())
    }
}

impl FromIterator<u32> for Cores {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self(numbers)
    }
}

impl<const N: usize> From<[u32; N]> for Cores {
    fn from(numbers: [u32; N]) -> Self {
        numbers.into_iter().collect()
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|one, next| one + 1 == *next);
        for (index, run) in runs.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match run {
                [only] => write!(f, "{comma}{only}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_shown_as_cpusets_are_written() {
        let shown = |numbers: &[u32]| numbers.iter().copied().collect::<Cores>().to_string();
        assert_eq!(shown(&[]), "");
        assert_eq!(shown(&[3]), "3");
        assert_eq!(shown(&[7, 1, 0, 3, 4, 5, 1]), "0-1,3-5,7");
    }
}
