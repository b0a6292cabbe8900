// SPDX-License-Identifier: Apache-2.0
//! Rule-processing requests of document 001 (section 3.1): parsed, compiled, optimised, evaluated.
//!
//! ```text
//! body ─parse─> Request ─compile─> Plan { shared, own, output } ─┐
//!               (written)          (checked, optimised)          v
//!                        Feed ─shared.apply─> Feed ─own.apply─> Feed ─output.write─> bytes
//! ```
//! Everything is a pure function of its arguments: there is no I/O and no clock here. A request
//! names fields of items; an item maps field names to text or nothing ([`Feed`]), and numbers and
//! dates are read out of the text by [`Rules::apply`].

mod compile;
mod date;
pub mod evaluate;
pub mod feed;
pub mod limits;
mod number;
mod optimise;
pub mod output;
pub mod plan;
pub mod request;
pub mod stop;

pub use evaluate::EvaluateError;
pub use feed::Feed;
pub use limits::Limits;
pub use output::SinkClosed;
pub use plan::{Output, Plan, Rules};
pub use request::{BadRequest, Prefetch, Request, Timeouts};
pub use stop::Stop;
