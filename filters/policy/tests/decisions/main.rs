// SPDX-License-Identifier: Apache-2.0
//! What holds of every decision, through the crate's public face.

mod account;
mod beside;
mod breakwater;
mod caching_plan;
mod claims;
mod dynamic;
mod eligibility;
mod estimate;
mod failing;
mod feedback;
mod fleet;
mod hedging;
mod history;
mod holding;
mod hot_cold;
mod key_movement;
mod panic;
mod prompts;
mod shares;
mod slots;
mod staleness;
mod zones;
