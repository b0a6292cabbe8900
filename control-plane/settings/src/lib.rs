// SPDX-License-Identifier: Apache-2.0
//! Configuration files, for every program of Weir that has one.
//!
//! ```text
//!  file ── read, yaml (shapes, text, lines) ── Scope (names, defaults, ranges) ──> values, Error { file, line, field, reason }
//! ```

mod error;
mod field;
mod reference;
mod scalar;
mod written;

pub use error::Error;
pub use field::{Scope, Value};
pub use reference::{Entry, Seen, Shape, note, observe};
#[doc(hidden)]
pub use reference::{below, group};
pub use scalar::{duration, quantity, show_duration, show_size, size};
pub use written::{Text, read, yaml};
