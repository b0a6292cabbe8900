// SPDX-License-Identifier: Apache-2.0
//! What a fault is.

use anyhow::Result;
use weir_mesh::{Plan, Programs};

use crate::faults::stage::Stage;

pub use crate::faults::expectation::{Expectation, Gap, Length};

/// Something that goes wrong, and what is expected of the mesh then.
pub struct Fault {
    /// As users name it.
    pub name: &'static str,
    /// What is expected.
    pub expectation: Expectation,
    /// A mesh of its own, by what it changes of the usual one; none: the mesh that faults share, which is whole
    /// afterwards.
    pub own: Option<fn(&mut Plan, &mut Programs) -> Result<()>>,
    /// The full form, by command.
    pub full: Length,
    /// The short form, in the tests; none: it has no short form.
    pub short: Option<Length>,
    /// Does the harm for [`Stage::harm`] and undoes it.
    pub run: fn(&mut Stage<'_>) -> Result<()>,
    /// Where it is known to fall short of that: of percentages and figures. Nothing excuses a request that is lost or
    /// doubled, or a counter that does not come back to zero.
    pub known_gap: Option<Gap>,
}
