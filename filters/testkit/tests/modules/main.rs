// SPDX-License-Identifier: Apache-2.0
//! The testkit on real modules: those of `fixtures/`, built here, and a few written by hand.

mod callouts;
mod fixture;
mod http;
mod shared;
mod vm;
