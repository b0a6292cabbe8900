// SPDX-License-Identifier: Apache-2.0
//! Rule-processing requests of document 001 (section 3.1): parsed, compiled, optimised, evaluated.

pub mod feed;
pub mod stop;

pub use feed::Feed;
pub use stop::Stop;
