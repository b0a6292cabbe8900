// SPDX-License-Identifier: Apache-2.0
//! What README.md promises to other languages.

mod golden;
mod hashes;
mod neighbours;
mod refusals;
mod round_trip;
mod samples;
mod versions;
