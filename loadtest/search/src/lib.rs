// SPDX-License-Identifier: Apache-2.0
//! What hot-function events cost a real search engine.
//!
//! ```text
//!  term counts ─> index (cached) ─> one Elasticsearch a way ─┐
//!       └───────> queries (seeded) ──> turns, way by way ────┴─> rounds ─> figures ─> table
//! ```
//! The ways are those of document 000, "Definitions: Types"; queries and loads those of document
//! 002, sections 3.1 and 4. Only one of the engines is asked at a time, in short turns whose order
//! is drawn anew, and every way answers the same queries in a round: what drifts, drifts for all.

pub mod client;
pub mod figures;
pub mod governor;
pub mod index;
pub mod node;
pub mod plan;
pub mod queries;
pub mod ring;
pub mod rounds;
pub mod table;
pub mod terms;
pub mod way;
