// SPDX-License-Identifier: Apache-2.0
//! The host that processes rules: the program itself before a bucket that does as a test wants, and
//! hosts within the test's process where its clock has to stand still.
//!
//! Nothing here waits for a time: a test waits for states that `/metrics` shows, and fetches last
//! until it has seen them.

mod bucket;
mod client;
mod http;
mod local;
mod reference;
mod shop;
mod worker;

mod answers;
mod leaving;
mod refusals;
mod sharing;
mod shutdown;
mod stores;
mod storm;
mod timeouts;
