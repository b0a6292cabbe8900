// SPDX-License-Identifier: Apache-2.0
//! Promises of FORMAT.md to other languages.

mod golden;
mod hashes;
mod neighbours;
mod refusals;
mod round_trip;
mod samples;
mod versions;
