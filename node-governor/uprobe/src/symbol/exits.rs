// SPDX-License-Identifier: Apache-2.0
//! The instructions that leave a function: returns, and jumps into others, which are calls whose return is ours.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// More of them are not a function that is called often: a table or a program's interpreter.
const MOST: usize = 64;

/// Where `code`, which starts at `offset` in the file, leaves the function that has these parts.
///
/// A jump to an address that is computed may stay within the function. Then the stack pointer is lower than at
/// entry, by which the kernel side knows it, unless the function keeps nothing on the stack.
pub(super) fn find(code: &[u8], offset: u64, parts: &[Range<u64>]) -> Result<Vec<u64>, String> {
    let mut decoder = Decoder::with_ip(64, code, offset, DecoderOptions::NONE);
    let mut exits = Vec::new();
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let at = instruction.ip();
        match leaves(&instruction, parts) {
            Leaves::Always => exits.push(at),
            Leaves::Never => {}
            Leaves::Perhaps => {
                return Err(format!(
                    "it may go on elsewhere by the instruction at offset {at:#x}"
                ));
            }
        }
    }
    match exits.len() {
        0..=MOST => Ok(exits),
        many => Err(format!(
            "it has {many} instructions that leave it, more than {MOST}"
        )),
    }
}

enum Leaves {
    Always,
    Never,
    /// It is not known, before it runs, whether it will; or it is no instruction.
    Perhaps,
}

fn leaves(instruction: &Instruction, parts: &[Range<u64>]) -> Leaves {
    let target = instruction.near_branch_target();
    let outside = instruction.op0_kind() == OpKind::NearBranch64
        && !parts.iter().any(|part| part.contains(&target));
    match instruction.mnemonic() {
        Mnemonic::INVALID => Leaves::Perhaps,
        Mnemonic::Ret => Leaves::Always,
        Mnemonic::Jmp if outside || instruction.op0_kind() != OpKind::NearBranch64 => {
            Leaves::Always
        }
        Mnemonic::Call => Leaves::Never,
        _ if outside => Leaves::Perhaps,
        _ => Leaves::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_left_by_returns_and_by_jumps_out_of_it() {
        let code = [
            &[0x55][..],                     // 0: push %rbp
            &[0x85, 0xff],                   // 1: test %edi, %edi
            &[0x74, 0x03],                   // 3: je 8, within
            &[0xeb, 0x01],                   // 5: jmp 8, within
            &[0x90],                         // 7: nop
            &[0xe9, 0x00, 0x10, 0x00, 0x00], // 8: jmp far away
            &[0xff, 0xe0],                   // 13: jmp *%rax
            &[0x5d],                         // 15: pop %rbp
            &[0xf3, 0xc3],                   // 16: repz ret
            &[0xc2, 0x08, 0x00],             // 18: ret $8
            &[0xe9, 0xe6, 0x03, 0x00, 0x00], // 21: jmp 1024, in the other part
        ]
        .concat();
        let parts = [0..26, 1024..1030];
        assert_eq!(find(&code, 0, &parts), Ok(vec![8, 13, 16, 18]));
        assert_eq!(find(&code[15..18], 1024, &parts), Ok(vec![1025]));
        assert!(find(&[0x06], 0, &parts).is_err());
        // A call of another function comes back; a jump that depends on something may not.
        assert_eq!(find(&[0xe8, 0x00, 0x10, 0x00, 0x00], 0, &parts), Ok(vec![]));
        assert!(find(&[0x74, 0x40], 0, &parts).is_err());
        assert!(find(&[0xc3; MOST + 1], 0, &parts).is_err());
    }
}
