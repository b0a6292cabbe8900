// SPDX-License-Identifier: Apache-2.0
//! Settings of a VM.

use std::collections::BTreeMap;

use crate::abi::{LogLevel, Status};

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) vm_id: String,
    pub(crate) vm_configuration: Vec<u8>,
    pub(crate) plugin_configuration: Vec<u8>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) properties: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) log_level: LogLevel,
    pub(crate) fuel_limit: u64,
    pub(crate) seed: Option<u64>,
    pub(crate) absent_in_log: Status,
    pub(crate) stops_iteration: bool,
}
