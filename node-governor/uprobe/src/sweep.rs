// SPDX-License-Identifier: Apache-2.0
//! Ends calls that are over without an event: a thread that jumped out of a hot function and now sleeps with its
//! stack pointer above that call.

use std::fs;

use crate::kernel::Kernel;
use crate::memory::Memory;

/// Looks at each call that has not ended.
pub(crate) fn sweep(kernel: &Kernel, memory: &Memory, lanes: u32) {
    for call in memory.running(lanes) {
        let entered = kernel.stack(call.thread, call.function);
        let now = stack(call.process, call.thread);
        if let (Some(entered), Some(now)) = (entered, now)
            && now > entered
        {
            memory.end(&call);
        }
    }
}

/// The stack pointer of a thread that sleeps; the kernel does not tell that of one that runs.
fn stack(process: u32, thread: u32) -> Option<u64> {
    parse(&fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall")).ok()?)
}

/// `NUMBER ARGUMENTS... STACK_POINTER INSTRUCTION`, or `running`.
fn parse(line: &str) -> Option<u64> {
    let stack = line.split_whitespace().rev().nth(1)?;
    u64::from_str_radix(stack.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_pointer_is_told_of_threads_that_sleep() {
        let blocked = "0 0x0 0x55 0x400 0x0 0x0 0x0 0x7ffd1234 0x7f0000001111\n";
        assert_eq!(parse(blocked), Some(0x7ffd_1234));
        assert_eq!(parse("-1 0x7ffd1234 0x7f0000001111\n"), Some(0x7ffd_1234));
        assert_eq!(parse("running\n"), None);
        assert_eq!(parse(""), None);
    }
}
