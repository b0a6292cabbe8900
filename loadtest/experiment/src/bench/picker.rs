// SPDX-License-Identifier: Apache-2.0
//! The cheapest external picker there can be: Weir's own decision on Weir's own tables, asked for over
//! Envoy's ext_proc.
//!
//! ```text
//!  weir-control ── delta xDS ──> tables.rs ──> Knowledge ── decide ──> picker.rs <── ext_proc ── sidecar
//! ```
//! One thread, headers only, no report, nothing logged.

mod knowledge;
mod service;
mod tables;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::ExternalProcessorServer;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use weir_stage::ports;

use self::knowledge::Knowledge;
use crate::bench::load::one_thread;

/// Names the host of each request to an Envoy that asks by ext_proc.
#[derive(clap::Args)]
pub struct Picker {
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

impl Picker {
    /// Picks until the process is ended.
    ///
    /// # Errors
    /// There is no port, the file cannot be written, or weir-control is gone.
    pub fn play(self) -> Result<()> {
        one_thread()?.block_on(self.serve())
    }

    async fn serve(self) -> Result<()> {
        let knowledge = Arc::new(Mutex::new(Knowledge::new()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        ports::write(&self.ports_file, &json!({"grpc": listener.local_addr()?}))?;
        let picker = service::Picker::new(Arc::clone(&knowledge), self.told_of_answers);
        let serving = Server::builder()
            .tcp_nodelay(true)
            .add_service(ExternalProcessorServer::new(picker))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::select! {
            served = serving => served.context("serving"),
            ended = tables::follow(self.control, &self.cluster, &knowledge) => ended.context("tables"),
        }
    }
}
