// SPDX-License-Identifier: Apache-2.0
//! What the jobs work on: made here, the same for the same seed.

pub mod text;
pub mod video;
