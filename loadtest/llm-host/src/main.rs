// SPDX-License-Identifier: Apache-2.0
//! EMULATED hosts of a language model.

fn main() {}
