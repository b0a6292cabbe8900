// SPDX-License-Identifier: Apache-2.0
//! The delta discovery server.
//!
//! What `run` calls (stub until the server is written):
//! `service(feed: Feed, shutdown: CancellationToken) -> a tonic service for Server::add_service`;
//! `standalone::Config` is embedded in the configuration as `standalone: Option<Config>`;
//! `standalone::resources(&Config, &[standalone::ClusterHosts], epoch) -> resources by type`.
