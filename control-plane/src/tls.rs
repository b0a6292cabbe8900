// SPDX-License-Identifier: Apache-2.0
//! TLS: what certificates and keys say, tried before anything is in force.

pub mod listener;
pub(crate) mod peer;

pub use listener::{Tls, acceptor};
