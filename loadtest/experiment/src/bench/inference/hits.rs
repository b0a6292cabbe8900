// SPDX-License-Identifier: Apache-2.0
//! What hosts say that they found, held against what they had read.

use std::collections::{HashMap, HashSet};

use anyhow::{Result, ensure};

use crate::bench::inference::records::Answered;

/// Counts again what hosts may have found: no more than what each had read before.
pub(super) fn check(answered: &[Answered]) -> Result<()> {
    let mut in_order: Vec<&Answered> = answered.iter().collect();
    in_order.sort_by_key(|a| a.begun_us);
    let mut read: HashMap<_, HashSet<&str>> = HashMap::new();
    for a in in_order {
        let before = read.entry(a.host).or_default();
        let here = a
            .blocks
            .iter()
            .take_while(|block| before.contains(block.as_str()));
        let most = here.count();
        ensure!(
            a.hit_blocks <= most,
            "{} claims to have found {} blocks, and had read only {most} of them",
            a.host,
            a.hit_blocks
        );
        before.extend(a.blocks.iter().map(String::as_str));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::inference::records::answered;

    #[test]
    fn a_host_cannot_have_found_what_it_never_read() {
        let read = |begun_us, port, blocks: &str, hit_blocks| Answered {
            begun_us,
            blocks: blocks.chars().map(String::from).collect(),
            hit_blocks,
            ..answered(port)
        };
        // As they ended, not as they began.
        let good = [
            read(2, 1, "abd", 2),
            read(1, 1, "abc", 0),
            read(3, 2, "abc", 0),
        ];
        check(&good).unwrap();
        let elsewhere = [read(1, 1, "abc", 0), read(2, 2, "abc", 1)];
        let behind_a_gap = [read(1, 1, "abc", 0), read(2, 1, "xbc", 1)];
        for bad in [elsewhere, behind_a_gap] {
            let error = check(&bad).unwrap_err().to_string();
            assert!(error.contains("claims to have found 1 blocks"), "{error}");
        }
    }
}
