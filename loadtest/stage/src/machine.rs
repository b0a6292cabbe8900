// SPDX-License-Identifier: Apache-2.0
//! The machine that the figures come from, in a line.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::thread::available_parallelism;

/// Cores, their model, memory, system.
#[must_use]
pub fn describe() -> String {
    let cores = available_parallelism().map_or(1, usize::from);
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let mut words = vec![format!("{cores} cores")];
    words.extend(model(&cpus).map(|model| format!("of {model}")));
    words.extend(gibibytes(&memory).map(|size| format!("with {size} GiB")));
    format!("{}, {OS} {ARCH}", words.join(" "))
}

fn model(cpus: &str) -> Option<&str> {
    let line = cpus.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

fn gibibytes(memory: &str) -> Option<u64> {
    let line = memory.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some((kibibytes + (1 << 19)) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_and_memory_are_read_from_proc() {
        assert_eq!(
            model("processor: 0\nmodel name\t: Some CPU @ 2 GHz\n"),
            Some("Some CPU @ 2 GHz")
        );
        assert_eq!(
            gibibytes("MemTotal:       24500000 kB\nMemFree: 1 kB\n"),
            Some(23)
        );
        assert_eq!((model(""), gibibytes("MemTotal: ?")), (None, None));
    }
}
