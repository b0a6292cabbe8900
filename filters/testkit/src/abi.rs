// SPDX-License-Identifier: Apache-2.0
//! The numbers of proxy-wasm ABI 0.2.1, as proxy-wasm-cpp-host defines them.

/// What a host function answers. The values are those of `WasmResult` in proxy-wasm-cpp-host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// No such key, queue, metric, property, stream or function.
    NotFound = 1,
    /// An argument is out of range, or the map or buffer does not exist in this callback.
    BadArgument = 2,
    /// A value has no serialized form.
    SerializationFailure = 3,
    /// A gRPC service argument is not a `GrpcService` message.
    ParseFailure = 4,
    /// A pointer and size lie outside the memory of the module.
    InvalidMemoryAccess = 6,
    /// The queue holds nothing.
    Empty = 7,
    /// The shared data changed since it was read.
    CasMismatch = 8,
    /// The host could not do it: for callouts, there is no such upstream.
    InternalFailure = 10,
    /// The HTTP call ended without an answer.
    BrokenConnection = 11,
    /// Envoy does not implement this.
    Unimplemented = 12,
}

/// What a module wants done with the stream after a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Pass on what was received.
    Continue,
    /// Hold it until the module resumes, answers or resets the stream.
    Pause,
}

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum LogLevel {
    /// Most verbose.
    Trace = 0,
    /// For developers.
    Debug = 1,
    /// Also what a module prints to its standard output.
    Info = 2,
    /// Unexpected but handled.
    Warn = 3,
    /// Also what a module prints to its standard error, such as panics.
    Error = 4,
    /// Least verbose.
    Critical = 5,
}

impl LogLevel {
    pub(crate) fn from_abi(level: u32) -> Option<Self> {
        Some(match level {
            0 => Self::Trace,
            1 => Self::Debug,
            2 => Self::Info,
            3 => Self::Warn,
            4 => Self::Error,
            5 => Self::Critical,
            _ => return None,
        })
    }
}

/// Which way a stream flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the caller.
    Request,
    /// To it.
    Response,
}

/// `WasmHeaderMapType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapType {
    Headers(Direction),
    Trailers(Direction),
    GrpcInitialMetadata,
    GrpcTrailingMetadata,
    CallHeaders,
    CallTrailers,
}

impl MapType {
    pub(crate) fn from_abi(map: u32) -> Result<Self, Status> {
        Ok(match map {
            0 => Self::Headers(Direction::Request),
            1 => Self::Trailers(Direction::Request),
            2 => Self::Headers(Direction::Response),
            3 => Self::Trailers(Direction::Response),
            4 => Self::GrpcInitialMetadata,
            5 => Self::GrpcTrailingMetadata,
            6 => Self::CallHeaders,
            7 => Self::CallTrailers,
            _ => return Err(Status::BadArgument),
        })
    }
}

/// `WasmBufferType`, without those of network filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BufferType {
    Body(Direction),
    CallBody,
    GrpcMessage,
    VmConfiguration,
    PluginConfiguration,
    CallData,
}

impl BufferType {
    pub(crate) fn from_abi(buffer: u32) -> Result<Self, Status> {
        Ok(match buffer {
            0 => Self::Body(Direction::Request),
            1 => Self::Body(Direction::Response),
            4 => Self::CallBody,
            5 => Self::GrpcMessage,
            6 => Self::VmConfiguration,
            7 => Self::PluginConfiguration,
            8 => Self::CallData,
            _ => return Err(Status::BadArgument),
        })
    }
}
