// SPDX-License-Identifier: Apache-2.0
#![doc = include_str!("../README.md")]

mod abi;
mod callout;
mod calls;
mod clock;
mod error;
mod guest;
mod headers;
mod host;
mod host_state;
mod hostcalls;
mod log;
mod metrics;
mod module;
mod program;
mod property;
mod random;
mod settings;
mod shared;
mod state;
mod stream;
mod vm;

pub use abi::{Action, Direction, LogLevel, Status};
pub use callout::{GrpcRequest, HttpCallRequest};
pub use calls::Calls;
pub use clock::Clock;
pub use error::{Error, Result};
pub use headers::Headers;
pub use host::Host;
pub use log::Log;
pub use metrics::Metrics;
pub use module::Module;
pub use program::Program;
pub use stream::LocalReply;
pub use vm::builder::VmBuilder;
pub use vm::callouts::{GrpcCall, HttpCall};
pub use vm::grpc_stream::GrpcStream;
pub use vm::http::HttpStream;
pub use vm::{RootId, Vm};
