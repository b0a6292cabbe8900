// SPDX-License-Identifier: Apache-2.0
//! weir-workers as processes.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;

use crate::ports;
use crate::processes::Processes;

/// Waits for the ports file of a weir-worker, and returns its address.
///
/// # Errors
/// A process died meanwhile, or the file did not come.
pub fn address(processes: &mut Processes, name: &str, file: &Path) -> Result<SocketAddr> {
    #[derive(Deserialize)]
    struct Ports {
        listen: SocketAddr,
    }
    let Ports { listen } = ports::wait(processes, name, file)?;
    Ok(listen)
}
