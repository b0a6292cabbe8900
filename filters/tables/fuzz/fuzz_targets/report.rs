// SPDX-License-Identifier: Apache-2.0
//! Any bytes are a report or are refused, and a report is the same after a round trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use weir_tables::v1::Report;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(report) = Report::decode(bytes) {
        let again = Report::decode(report.encode_to_vec().as_slice());
        assert_eq!(again, Ok(report));
    }
});
