// SPDX-License-Identifier: Apache-2.0
//! Every developer command of the project.

fn main() {}
