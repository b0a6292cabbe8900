// SPDX-License-Identifier: Apache-2.0
//! How soon two sidecars decide by a host's change.

use anyhow::Result;
use crate::Bench;
use crate::section::Section;
pub(super) fn measure(_bench: &Bench) -> Result<Section> { anyhow::bail!("not yet") }
