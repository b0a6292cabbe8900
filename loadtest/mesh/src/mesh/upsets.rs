// SPDX-License-Identifier: Apache-2.0
//! Disks that are full and clocks that are wrong (`Plan::small_disks`, `Plan::own_clocks`).

use anyhow::{Context, Result};

use crate::mesh::Mesh;

impl Mesh {
    /// Fills the disk that a process logs to: weir-control, a host, or a caller's sidecar.
    ///
    /// # Errors
    /// It has none of its own.
    pub fn fill_disk(&mut self, process: &str) -> Result<()> {
        let id = self.id(process)?;
        self.surroundings.fill(id)
    }

    /// Its disk has room again.
    ///
    /// # Errors
    /// It was not filled.
    pub fn free_disk(&mut self, process: &str) -> Result<()> {
        let id = self.id(process)?;
        self.surroundings.free(id)
    }

    /// From now on the clock of a weir-control or a caller is so many seconds ahead of the machine's. Zero puts
    /// it right.
    ///
    /// # Errors
    /// It has none of its own.
    pub fn step_clock(&self, name: &str, seconds: i64) -> Result<()> {
        self.surroundings.step(name, seconds)
    }

    fn id(&mut self, process: &str) -> Result<i32> {
        let listed = self.processes.list()?;
        let listed = listed.iter().find(|listed| listed.name == process);
        let listed = listed.with_context(|| format!("there is no process `{process}`"))?;
        Ok(listed.process.id())
    }
}
