// SPDX-License-Identifier: Apache-2.0
//! The memory of a module, as host functions use it.

use wasmtime::{AsContext, AsContextMut, Caller};

use crate::abi::Status;
use crate::state::State;

/// Why a host function did not succeed.
pub(crate) enum Failure {
    /// The module gets this status.
    Status(Status),
    /// The VM ends here.
    Trap(wasmtime::Error),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// What a host function returns before it becomes a number.
pub(crate) type Answer = Result<(), Failure>;

pub(crate) fn status(answer: Answer) -> wasmtime::Result<u32> {
    match answer {
        Ok(()) => Ok(Status::Ok as u32),
        Err(Failure::Status(status)) => Ok(status as u32),
        Err(Failure::Trap(error)) => Err(error),
    }
}

/// How a host gets memory of the module for what it hands over. Some modules call it `malloc`.
pub(crate) const ALLOCATE: &str = "proxy_on_memory_allocate";

/// A call from the module into the host.
pub(crate) struct Guest<'a>(pub(crate) Caller<'a, State>);

impl Guest<'_> {
    pub(crate) fn state(&mut self) -> &mut State {
        self.0.data_mut()
    }

    pub(crate) fn read(&self, at: u32, size: u32) -> Result<Vec<u8>, Status> {
        let memory = self.0.data().memory.ok_or(Status::InvalidMemoryAccess)?;
        let start = at as usize;
        let bytes = memory
            .data(self.0.as_context())
            .get(start..start + size as usize);
        bytes.map(<[u8]>::to_vec).ok_or(Status::InvalidMemoryAccess)
    }

    pub(crate) fn read_text(&self, at: u32, size: u32) -> Result<String, Status> {
        Ok(String::from_utf8_lossy(&self.read(at, size)?).into_owned())
    }

    pub(crate) fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Status> {
        let memory = self.0.data().memory.ok_or(Status::InvalidMemoryAccess)?;
        let written = memory.write(self.0.as_context_mut(), at as usize, bytes);
        written.map_err(|_| Status::InvalidMemoryAccess)
    }

    pub(crate) fn write_u32(&mut self, at: u32, value: u32) -> Result<(), Status> {
        self.write(at, &value.to_le_bytes())
    }

    pub(crate) fn write_u64(&mut self, at: u32, value: u64) -> Result<(), Status> {
        self.write(at, &value.to_le_bytes())
    }

    /// Hands bytes to the module in memory that the module allocates. Nothing is null.
    pub(crate) fn give(&mut self, bytes: &[u8], pointer: u32, size: u32) -> Answer {
        let mut at = 0;
        if !bytes.is_empty() {
            self.state().count(ALLOCATE);
            let allocate = self
                .0
                .data()
                .allocate
                .clone()
                .ok_or(Status::InvalidMemoryAccess)?;
            at = allocate
                .call(&mut self.0, bytes.len() as u32)
                .map_err(Failure::Trap)?;
            self.write(at, bytes)?;
        }
        self.write_u32(pointer, at)?;
        self.write_u32(size, bytes.len() as u32)?;
        Ok(())
    }
}
