// SPDX-License-Identifier: Apache-2.0
//! An HTTP host with cores, queues and a cache, for tests and demonstrations.

fn main() {}
