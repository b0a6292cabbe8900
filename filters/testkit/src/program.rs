// SPDX-License-Identifier: Apache-2.0
//! What can run in a VM in the place of a module.

use crate::calls::Calls;

/// A program that a VM runs in the place of a module: another shell of the same filter, so that the same tests are both
/// shells'. Made by what [`Module::of_program`](crate::Module::of_program) was given, one for each VM.
pub trait Program {
    /// A callback of the ABI, by its name, with its arguments; what it answers, or none as of a module that does not
    /// export it. What it asks the host for meanwhile is done when it has returned, as for a module.
    fn call(
        &mut self,
        calls: &mut Calls<'_>,
        callback: &'static str,
        arguments: &[u32],
    ) -> Option<u32>;
}
