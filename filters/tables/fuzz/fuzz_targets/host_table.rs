// SPDX-License-Identifier: Apache-2.0
//! Any bytes are a host table or are refused in one line.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use weir_tables::decode_host_table;

fuzz_target!(|bytes: &[u8]| {
    // The name that the golden message has.
    if let Err(refusal) = decode_host_table("rules", bytes, Duration::from_secs(1000)) {
        assert!(!refusal.to_string().contains('\n'));
    }
});
