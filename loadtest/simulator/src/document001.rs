// SPDX-License-Identifier: Apache-2.0
//! The rule-processing system of document 001: van den Berg, "Scheduling data feed processing jobs",
//! MSc thesis, Utrecht University, 2023. Its trace is not public: the requests are made up from what
//! the text says of them, and fitted to its tables.

pub mod circumstance;
pub mod experiment;
pub mod fit;
pub mod history;
mod params;
mod project;
pub mod published;
pub mod report;
mod requests;

pub use crate::params::UnknownParam;
pub use circumstance::Circumstance;
pub use experiment::Experiment;
pub use params::Params;
pub use requests::Requests;
