// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Gathers load and cache contents of hosts and pushes them to sidecars.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Flags {
    /// The configuration file; it and the files it names are watched.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Check the configuration, print what it lacks for its policies, and exit: 0 if it is good, 64 if not.
    #[arg(long)]
    pub check: bool,
    /// With --check: ask each configured page of each host once, and Consul and Prometheus, and print a line a host with
    /// what is there and what is missing. It takes at most a minute. 1 if a page does not answer or lacks a figure.
    #[arg(long, requires = "check")]
    pub probe: bool,
    /// Write the bound addresses there, as {"xds":"ip:port","admin":"ip:port"}.
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub ports_file: Option<PathBuf>,
    /// Log lines as JSON.
    #[arg(long)]
    pub log_json: bool,
}
