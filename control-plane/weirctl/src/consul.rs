// SPDX-License-Identifier: Apache-2.0
//! The entries of a Consul mesh: written, verified, taken out.
//!
//! ```text
//!  flags ─> Weir ─> shares ─┬─ apply, remove: plan (pure) ──> rows ──> Consul, or nothing where one is refused
//!  Consul ─> what stands ───┘
//!        └─> evidence ────────── check: findings (pure) ───> lines
//! ```

mod apply;
mod check;
mod client;
mod evidence;
mod service;
mod upstream;
mod wish;

pub use apply::{Applied, apply, remove};
pub use check::check;
pub use service::service;
