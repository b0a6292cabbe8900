// SPDX-License-Identifier: Apache-2.0
//! Where sidecars get the filter's code from.

use std::path::{Path, PathBuf};

use super::config::{Config, Delivery};

/// The first bytes of every WebAssembly module, and the version of its format.
const MAGIC: &[u8] = b"\0asm\x01\0\0\0";

/// The filter's code as ECDS carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// The module itself.
    Inline(Vec<u8>),
    /// A file that each sidecar has. A new file under the same path is not noticed.
    Path(String),
    /// The same, of a dynamic module.
    Native(String),
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
    /// The file is something else, or only a part of one has been written so far.
    #[error("{} is not a whole WebAssembly module", .0.display())]
    NotWasm(PathBuf),
}

impl Code {
    /// Reads the module if it travels inline. Its path is relative to `base`, the folder of the
    /// configuration file.
    pub fn load(config: &Config, base: &Path) -> Result<Self, CodeError> {
        match config.delivery {
            Delivery::Path => Ok(Self::Path(config.code.clone())),
            Delivery::Native => Ok(Self::Native(config.code.clone())),
            Delivery::Inline => {
                let path = base.join(&config.code);
                match weir_settings::read(&path) {
                    Ok(bytes) if is_module(&bytes) => Ok(Self::Inline(bytes)),
                    Ok(_) => Err(CodeError::NotWasm(path)),
                    Err(reason) => Err(CodeError::Unreadable { path, reason }),
                }
            }
        }
    }
}

/// Whether the sections of the module end where the bytes do. A file that is being copied is cut off: sent so,
/// it would stop the filter of every sidecar.
fn is_module(bytes: &[u8]) -> bool {
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
        return false;
    };
    while let [_kind, after @ ..] = rest {
        let section = length(after).and_then(|(length, after)| after.get(length..));
        let Some(after) = section else {
            return false;
        };
        rest = after;
    }
    bytes.len() > MAGIC.len()
}

/// A length in LEB128 and what follows it.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = 0;
    for (place, byte) in bytes.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((length, &bytes[place + 1..]));
        }
    }
    None
}
