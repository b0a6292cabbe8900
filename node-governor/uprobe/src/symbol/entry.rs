// SPDX-License-Identifier: Apache-2.0
//! Which instruction of a function is watched, and what that costs.

use object::Architecture;

/// What an event costs at a site, by its first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The kernel does what the instruction does.
    Fast,
    /// The kernel lets the thread run a copy of the instruction by itself: several times as much.
    Slow,
}

/// Enough for every instruction that is known here.
pub(super) const LOOKED_AT: u64 = 16;

const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];

/// How many bytes to skip, and the pace there. The mark that protected programs have before each function's first
/// instruction is slow to watch and changes nothing: what follows it is watched where that is fast.
pub(super) fn look(code: &[u8], architecture: Architecture) -> (u64, Pace) {
    if architecture != Architecture::X86_64 {
        return (0, Pace::Slow);
    }
    match code.strip_prefix(ENDBR64) {
        Some(rest) if is_fast(rest) => (ENDBR64.len() as u64, Pace::Fast),
        None if is_fast(code) => (0, Pace::Fast),
        _ => (0, Pace::Slow),
    }
}

/// What the kernel does by itself: pushes of a register and no-ops (arch/x86/kernel/uprobes.c).
fn is_fast(code: &[u8]) -> bool {
    const NOP5: &[u8] = &[0x0f, 0x1f, 0x44, 0x00, 0x00];
    matches!(code, [0x50..=0x57 | 0x90, ..] | [0x41, 0x50..=0x57, ..]) || code.starts_with(NOP5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_is_watched_itself_also_behind_a_mark() {
        let x86 = |code| look(code, Architecture::X86_64);
        assert_eq!(x86(&[0x55, 0x48]), (0, Pace::Fast));
        assert_eq!(x86(&[0x41, 0x57, 0x41]), (0, Pace::Fast));
        assert_eq!(x86(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55]), (4, Pace::Fast));
        assert_eq!(x86(&[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89]), (0, Pace::Slow));
        assert_eq!(x86(&[0x48, 0x83, 0xec, 0x08]), (0, Pace::Slow));
        assert_eq!(x86(&[]), (0, Pace::Slow));
    }
}
