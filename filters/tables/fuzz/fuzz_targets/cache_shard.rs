// SPDX-License-Identifier: Apache-2.0
//! Any bytes are a cache shard or are refused in one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_tables::decode_cache_shard;

fuzz_target!(|bytes: &[u8]| {
    // The name that the golden message has.
    if let Err(refusal) = decode_cache_shard("rules/4/2", bytes) {
        assert!(!refusal.to_string().contains('\n'));
    }
});
