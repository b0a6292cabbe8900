// SPDX-License-Identifier: Apache-2.0
#![doc = include_str!("../README.md")]

mod abi;
mod callout;
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
mod property;
mod random;
mod settings;
mod shared;
mod state;
mod stream;
mod vm;

pub use abi::{Action, LogLevel, Status};
pub use callout::{GrpcRequest, HttpCallRequest};
pub use clock::Clock;
pub use error::{Error, Result};
pub use headers::Headers;
pub use host::Host;
pub use log::Log;
pub use metrics::Metrics;
pub use module::Module;
pub use stream::LocalReply;
pub use vm::builder::VmBuilder;
pub use vm::callouts::{GrpcCall, HttpCall};
pub use vm::grpc_stream::GrpcStream;
pub use vm::http::HttpStream;
pub use vm::{RootId, Vm};
