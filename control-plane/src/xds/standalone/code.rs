// SPDX-License-Identifier: Apache-2.0
//! Where sidecars get the filter's code from.

use std::path::{Path, PathBuf};

use super::config::{Config, Delivery};

/// The first bytes of every WebAssembly module.
const MAGIC: &[u8] = b"\0asm";

/// The filter's code as ECDS carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// The module itself.
    Inline(Vec<u8>),
    /// A file that each sidecar has. A new file under the same path is not noticed.
    Path(String),
}

/// Why there is no code to send.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The file is not there or not readable.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        reason: std::io::Error,
    },
    /// The file is something else.
    #[error("{} is not a WebAssembly module", .0.display())]
    NotWasm(PathBuf),
}

impl Code {
    /// Reads the module if it travels inline. Its path is relative to `base`, the folder of the
    /// configuration file.
    pub fn load(config: &Config, base: &Path) -> Result<Self, CodeError> {
        match config.delivery {
            Delivery::Path => Ok(Self::Path(config.wasm.clone())),
            Delivery::Inline => {
                let path = base.join(&config.wasm);
                match std::fs::read(&path) {
                    Ok(bytes) if bytes.starts_with(MAGIC) => Ok(Self::Inline(bytes)),
                    Ok(_) => Err(CodeError::NotWasm(path)),
                    Err(reason) => Err(CodeError::Unreadable { path, reason }),
                }
            }
        }
    }
}
