// SPDX-License-Identifier: Apache-2.0
//! The bytes that every implementation reads and, where it writes, may write.
//! `WEIR_RENEW_GOLDEN=1 cargo test -p weir-tables` writes the files anew.

use std::fs;
use std::path::Path;

use prost::Message;
use weir_tables::v1;

use crate::samples;

fn hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| {
        let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ") + "\n"
    };
    bytes.chunks(16).map(line).collect()
}

/// Compares a message with its golden files; both directions have to agree.
fn check<M: Message + Default + PartialEq + std::fmt::Debug>(name: &str, message: &M) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let (binary, text) = (
        golden.join(format!("{name}.bin")),
        golden.join(format!("{name}.hex")),
    );
    let bytes = message.encode_to_vec();
    if std::env::var_os("WEIR_RENEW_GOLDEN").is_some() {
        fs::create_dir_all(&golden).unwrap();
        fs::write(&binary, &bytes).unwrap();
        fs::write(&text, hex(&bytes)).unwrap();
    }
    let stored = fs::read(&binary).unwrap();
    assert_eq!(
        hex(&bytes),
        hex(&stored),
        "{name}: the encoding has changed"
    );
    assert_eq!(
        hex(&stored),
        fs::read_to_string(&text).unwrap(),
        "{name}: .bin and .hex differ"
    );
    assert_eq!(&M::decode(stored.as_slice()).unwrap(), message, "{name}");
}

#[test]
fn a_host_table_has_the_bytes_of_its_golden_file() {
    check::<v1::HostTable>("host_table", &samples::host_table());
}

#[test]
fn a_cache_shard_has_the_bytes_of_its_golden_file() {
    check::<v1::CacheShard>("cache_shard", &samples::cache_shard());
}

#[test]
fn a_receipt_has_the_bytes_of_its_golden_file() {
    check::<v1::Receipt>("receipt", &samples::receipt());
}

#[test]
fn a_report_has_the_bytes_of_its_golden_file() {
    check::<v1::Report>("report", &samples::report());
}

#[test]
fn what_a_node_and_weir_control_tell_each_other_has_the_bytes_of_its_golden_files() {
    check::<v1::NodeReport>("node_report", &samples::node_report());
    check::<v1::HostRow>("host_row", &samples::host_row());
}

#[test]
fn the_golden_messages_are_sound() {
    let table = samples::host_table().encode_to_vec();
    weir_tables::decode_host_table(samples::CLUSTER, &table, samples::RECEIVED).unwrap();
    let shard = samples::cache_shard().encode_to_vec();
    let (_, shard) = weir_tables::decode_cache_shard(samples::SHARD, &shard).unwrap();
    assert_eq!(shard.len(), 3);
}
