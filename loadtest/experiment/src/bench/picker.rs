// SPDX-License-Identifier: Apache-2.0
//! The cheapest external picker there can be: Weir's own decision on Weir's own tables, asked for over
//! Envoy's ext_proc.
//!
//! ```text
//!  weir-control ── delta xDS ──> tables.rs ──> Knowledge ── decide ──> picker.rs <── ext_proc ── sidecar
//! ```
//! One thread, headers only, no report, nothing logged.

mod knowledge;
mod picker;
mod tables;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use clap::Parser;
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::ExternalProcessorServer;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use weir_stage::{exit, ports};

use crate::knowledge::Knowledge;
use crate::picker::Picker;

/// Names the host of each request to an Envoy that asks by ext_proc.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// weir-control's discovery server
    #[arg(long, value_name = "ADDRESS")]
    control: SocketAddr,
    /// The cluster whose hosts are named
    #[arg(long)]
    cluster: String,
    /// The sidecar sends response headers too, by which requests in flight are known
    #[arg(long)]
    told_of_answers: bool,
    /// `{"grpc": "ADDRESS"}` is written to it, once it listens
    #[arg(long, value_name = "FILE")]
    ports_file: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    exit::code(serve(Cli::parse()).await)
}

async fn serve(cli: Cli) -> Result<()> {
    let knowledge = Arc::new(Mutex::new(Knowledge::new()));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    ports::write(&cli.ports_file, &json!({"grpc": listener.local_addr()?}))?;
    let picker =
        ExternalProcessorServer::new(Picker::new(Arc::clone(&knowledge), cli.told_of_answers));
    let serving = Server::builder()
        .tcp_nodelay(true)
        .add_service(picker)
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::select! {
        served = serving => served.context("serving"),
        ended = tables::follow(cli.control, &cli.cluster, &knowledge) => ended.context("tables"),
    }
}
