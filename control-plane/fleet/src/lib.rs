// SPDX-License-Identifier: Apache-2.0
//! The state of a fleet: what is known of clusters and hosts, and what is pushed to sidecars. Pure.
//!
//! ```text
//!  Update ── State::fold ──┐
//!  time ──── State::advance ├──> State ── State::publish ──> Snapshot (tables, shards)
//!  Role ──── State::take_role ┘    │
//!                                └──> Event (for metrics and logs), View (for people)
//! ```
//!
//! No I/O, no clock, no log, no metric: time is an argument, and what a reader may want to know of a step comes back
//! as [`Event`]s. weir-control's `owner` is the shell around it; the simulator and the fuzz targets run the same code.

pub mod authorization;
pub mod budget;
pub mod clients;
pub mod cluster;
pub mod costs;
pub mod decoded;
pub mod event;
pub mod figures;
pub mod holdings;
pub mod host;
pub mod ledger;
pub mod levels;
mod mean;
pub mod node;
pub mod observed;
pub mod pace;
pub mod page_cores;
pub mod planner;
pub mod poll;
pub mod prometheus;
pub mod receipts;
mod refetched;
pub mod requests;
pub mod role;
pub mod rollout;
pub mod settings;
mod sharing;
pub mod snapshot;
pub mod standalone;
pub mod state;
pub mod tables;
pub mod types;
pub mod under_way;
pub mod update;
pub mod view;

pub use event::Event;
pub use settings::Settings;
pub use state::State;
pub use update::Update;
