// SPDX-License-Identifier: Apache-2.0
//! Sends a recorded workload open-loop and measures every answer.

fn main() {}
